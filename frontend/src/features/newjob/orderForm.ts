import type { JobRequest } from "./draft";

/** An order as POST /jobs/upload takes it: with a model file to start from, which JSON has no place for. Only for jobs with a script. */
export function formOf({ script, requirements, arguments: args, ...fields }: JobRequest, model: File): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== null && value !== undefined) form.set(name, typeof value === "object" ? JSON.stringify(value) : String(value));
  }
  // The server takes one string in shell quoting, and that is what the form holds.
  if (args) form.set("arguments", String(args));
  form.set("file_code", new File([script ?? ""], "train.py"));
  if (requirements) form.set("file_req", new File([requirements], "requirements.txt"));
  form.set("file_model", model);
  return form;
}
