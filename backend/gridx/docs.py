"""The interactive API page at /docs, with its assets served by us: no third party, no inline script, so that the strict CSP holds."""

from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, Response
from fastapi.staticfiles import StaticFiles

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Grid-X API</title>
<link rel="stylesheet" href="/docs/assets/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/assets/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
_START = 'SwaggerUIBundle({url: "/openapi.json", dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null});\n'
# Swagger UI sets style attributes while it draws; scripts stay our own.
_CSP = (
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"
)


def install_docs(app: FastAPI) -> None:
    """Add /docs and its assets, which the package fastapi-swagger brings."""
    assets = Path(str(files("fastapi_swagger"))) / "resources"
    app.mount("/docs/assets", StaticFiles(directory=assets), name="docs-assets")

    @app.get("/docs", include_in_schema=False)
    def page() -> HTMLResponse:
        return HTMLResponse(_PAGE, headers={"Content-Security-Policy": _CSP})

    @app.get("/docs/start.js", include_in_schema=False)
    def start() -> Response:
        return Response(_START, media_type="text/javascript")
