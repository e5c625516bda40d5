export interface Finding {
  tone: "good" | "hint" | "problem";
  text: string;
}

/** What can be told about a training script by reading it. Hints only: the server and the sandbox have the last word. */
export function checkScript(script: string, rounds: number | "in step"): Finding[] {
  const code = withoutComments(script);
  const own = rounds === "in step" ? [joinsRanks(code), savesCheckpoints(code)] : [startsFromGlobalModel(code, rounds)];
  const numbers = rounds === "in step" ? "step=step, samples_per_s=speed" : "accuracy=accuracy";
  return [savesModel(code), ...own, reports(code, numbers), ...traps(code)];
}

/** What a script would have to read for the strategy to mean anything, where it does not: the server's own rule. */
export function missesStrategy(script: string, strategy: string): string | null {
  if (strategy === "fedprox" && !/proximal_term|'mu'|"mu"/.test(script)) {
    return "Your script does not call gridx_task.proximal_term(), so FedProx would be plain averaging. Add the term to its loss";
  }
  if (strategy === "diloco" && !script.includes("local_steps")) {
    return 'Your script does not read gridx_task.hyperparameters()["local_steps"]; DiLoCo expects that many optimizer steps a round';
  }
  return null;
}

/** Whether a script can score held-out rows, by the server's own rule: a top-level function that takes two things. */
export function checkEvaluate(script: string, isAskedFor: boolean): Finding {
  const code = withoutComments(script);
  const parameters = parametersOf(code, /^def\s+evaluate\s*\(/m);
  const tone = isAskedFor ? "problem" : "hint";
  const wanted = 'evaluate(model_path, csv_path) that loads the model and the rows and returns numbers, such as {"accuracy": 0.93, "loss": 0.2}';
  if (parameters === null) return { tone, text: `Held-out rows need a top-level function ${wanted}; the script has none` };
  if (!takesTwo(parameters)) return { tone, text: `Held-out rows need a function ${wanted}; the script's own takes something else` };
  if (!code.includes("__name__")) return { tone, text: 'The script is imported for evaluate(), so its training must stand under if __name__ == "__main__":' };
  return { tone: "good", text: "The script has evaluate(model_path, csv_path): it can score held-out rows" };
}

/** The parameters of the first match, each as it is written; null without a match. */
function parametersOf(code: string, head: RegExp): string[] | null {
  const found = head.exec(code);
  if (!found) return null;
  const parameters = [""];
  let depth = 0;
  for (const char of code.slice(found.index + found[0].length)) {
    if (char === ")" && depth === 0) break;
    depth += "([{".includes(char) ? 1 : ")]}".includes(char) ? -1 : 0;
    if (char === "," && depth === 0) parameters.push("");
    else parameters[parameters.length - 1] += char;
  }
  return parameters.map((parameter) => parameter.trim()).filter((parameter) => parameter && parameter !== "/");
}

function takesTwo(parameters: string[]): boolean {
  const star = parameters.findIndex((parameter) => parameter.startsWith("*"));
  const positional = star < 0 ? parameters : parameters.slice(0, star);
  const takesAny = star >= 0 && /^\*\w/.test(parameters[star] ?? "");
  return positional.filter((parameter) => !parameter.includes("=")).length <= 2 && (positional.length >= 2 || takesAny);
}

function savesModel(code: string): Finding {
  if (!code.includes("model.pth")) {
    return { tone: "problem", text: 'It never mentions model.pth. End with torch.save(model.state_dict(), "model.pth")' };
  }
  if (/torch\.save\(\s*[\w.]+\s*,\s*["'](\.\/)?model\.pth/.test(code) && !code.includes("state_dict")) {
    return { tone: "problem", text: 'It saves a whole model; only weights are taken: torch.save(model.state_dict(), "model.pth")' };
  }
  return { tone: "good", text: "Writes model.pth" };
}

function startsFromGlobalModel(code: string, rounds: number): Finding {
  if (/load_global_model|global_model\.pth/.test(code)) return { tone: "good", text: "Starts each round from the global model" };
  return rounds > 1
    ? { tone: "problem", text: `It never loads the global model, so ${rounds} rounds would each start anew. Add gridx_task.load_global_model(model)` }
    : { tone: "hint", text: "For more than one round, add gridx_task.load_global_model(model)" };
}

function joinsRanks(code: string): Finding {
  return code.includes("init_process_group")
    ? { tone: "good", text: "Joins the other ranks by torch.distributed" }
    : { tone: "problem", text: "It never calls dist.init_process_group(), so each rank would train on its own. Add it, and wrap the model in DistributedDataParallel" };
}

function savesCheckpoints(code: string): Finding {
  return code.includes("save_checkpoint") && code.includes("load_checkpoint")
    ? { tone: "good", text: "Goes on from its last checkpoint when a rank was lost" }
    : { tone: "hint", text: "When a rank is lost, training starts anew. To go on from a checkpoint instead, add gridx_task.save_checkpoint() and load_checkpoint()" };
}

function reports(code: string, numbers: string): Finding {
  return /gridx_task\s*\.\s*report|from\s+gridx_task\s+import[^\n]*report/.test(code)
    ? { tone: "good", text: "Reports metrics: you will see it learn" }
    : { tone: "hint", text: `To see it learn, add gridx_task.report(epoch=epoch, loss=loss, ${numbers})` };
}

function traps(code: string): Finding[] {
  const found: Finding[] = [];
  const hint = (text: string) => found.push({ tone: "hint", text });
  if (/\.fit_transform\(|(Scaler|Encoder)\(\)\.fit\(/.test(code)) {
    hint("It fits a scaler or encoder on its own chunk, so that machines disagree. Use the numbers in schema.json (gridx_task.schema())");
  }
  if (/nunique\(\)|len\(\s*(set|np\.unique|\w+\.unique)\(|\.unique\(\)\)/.test(code)) {
    hint("It seems to count classes from its rows; a chunk may lack one. Write their number into the script");
  }
  if (/read_csv\(\s*["'](?!(\.\/)?data\.csv["'])/.test(code)) hint("It reads another file than data.csv, which is where its rows lie");
  if (/(\.to\(\s*["']cuda|\.cuda\(\))/.test(code) && !code.includes("is_available")) {
    hint("It needs a GPU; ask for one below, or choose the device by torch.cuda.is_available()");
  }
  if (/^\s*(import|from)\s+(requests|urllib)|torchvision\.datasets|download\s*=\s*True/m.test(code)) {
    hint("It seems to download something; the sandbox has no network");
  }
  if (/input\(\s*["')]/.test(code)) hint("It asks for input; nobody is there to answer");
  return found;
}

function withoutComments(script: string): string {
  return script.replace(/^\s*#.*$/gm, "");
}
