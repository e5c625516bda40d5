import { describe, expect, it } from "vitest";
import { ApiError, errorOf, fieldErrors } from "./errors";

describe("fieldErrors", () => {
  it("puts words beside their field, and the rest under no name", () => {
    const error = new ApiError(422, "invalid", "email: is not an e-mail address; password: too short; with a; semicolon: inside");
    expect(fieldErrors(error, ["email", "password"])).toEqual({ email: "is not an e-mail address", password: "too short", "": "with a; semicolon: inside" });
  });
  it("is empty without an error", () => {
    expect(fieldErrors(null, ["email"])).toEqual({});
  });
});

describe("errorOf", () => {
  it("reads code, detail and Retry-After", () => {
    const error = errorOf(new Response(null, { status: 503, headers: { "Retry-After": "5" } }), { code: "unavailable", detail: "try again" });
    expect(error).toMatchObject({ status: 503, code: "unavailable", message: "try again", retryAfterS: 5, isPassing: true });
  });
  it("copes with an answer that is not the API's", () => {
    expect(errorOf(new Response(null, { status: 404 }), "<html>")).toMatchObject({ code: "unknown", isPassing: false });
  });
});
