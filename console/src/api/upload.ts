// Files that are put into the gateway. They may be large, so that a page shows how far they are.
import { currentToken } from "../session";
import { ProblemError, toProblem } from "./problem";

/** Puts a file at an address. `progress` gets the part that was sent, from 0 to 1, which `fetch` does not report. */
export function putFile(address: string, file: Blob, type: string, progress: (part: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("PUT", address);
    request.setRequestHeader("Authorization", `Bearer ${currentToken() ?? ""}`);
    request.setRequestHeader("Content-Type", type);
    request.upload.onprogress = ({ loaded, total }) => progress(total > 0 ? loaded / total : 0);
    request.onerror = () => reject(new ProblemError(toProblem("", 0, "The upload broke off")));
    request.onload = () => {
      if (request.status < 300) return resolve();
      let body: unknown = request.responseText;
      try {
        body = JSON.parse(request.responseText);
      } catch {
        // The text is shown as it is.
      }
      reject(new ProblemError(toProblem(body, request.status, request.statusText)));
    };
    request.send(file);
  });
}
