// Begins to go on with a session when this file is read.
import { resumeSession } from "./session";

export const resumed = resumeSession();
