import requirementsUrl from "../../../../examples/breast_cancer/requirements.txt?url";
import scriptUrl from "../../../../examples/breast_cancer/train.py?url";
import inStepUrl from "../../../../examples/ddp_breast_cancer/train.py?url";
import dataUrl from "./breast_cancer.csv?url";
import type { Draft } from "./draft";

/** The breast-cancer example, for either way to train: 569 rows that teach a small network to tell benign from malignant. */
export async function loadExample(mode: Draft["mode"]): Promise<Partial<Draft> & { file: File }> {
  const [script, requirements, data] = await Promise.all([mode === "ddp" ? inStepUrl : scriptUrl, requirementsUrl, dataUrl].map(fetched));
  return {
    title: "Tumour classifier",
    script: (await script?.text()) ?? "",
    scriptName: "train.py",
    requirements: (await requirements?.text()) ?? "",
    requirementsName: "requirements.txt",
    dataset: null,
    rounds: "5",
    chunks: "3",
    hours: "1",
    strategy: "fedavg",
    strategyOptions: {},
    partitioner: "iid",
    partitionerOptions: {},
    args: "",
    hyperparameters: '{"epochs": 5, "learning_rate": 0.03}',
    // Its time is fixed, so that an upload of it that was cut is found again.
    file: new File([(await data?.blob()) ?? ""], "breast_cancer.csv", { type: "text/csv", lastModified: 0 }),
  };
}

async function fetched(url: string): Promise<Response> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} is not there`);
  return answer;
}
