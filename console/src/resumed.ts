// Starts to resume a session when this file is loaded.
import { resumeSession } from "./session";

export const resumed = resumeSession();
