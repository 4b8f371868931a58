// The session is asked for before the rest of this list is read.
import { resumed } from "./resumed";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { App } from "./app";
import { asProblem } from "./api/problem";
import { hasSecret, useHashPath, useHashSearch } from "./location";
import { resumeSession } from "./session";
import "./styles/index.css";
import { applyTheme } from "./theme";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // A refused request would be refused again; only a gateway that does not answer is asked once more.
      retry: (failures, error) => failures < 1 && asProblem(error).status === 0,
      staleTime: 2_000,
    },
  },
});

applyTheme();
// A link that is pasted into the open page changes only the fragment. This runs before the router reads it.
addEventListener("hashchange", () => {
  if (hasSecret()) void resumeSession().then(() => queries.invalidateQueries());
});
await resumed;
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <Router hook={useHashPath} searchHook={useHashSearch}>
          <App />
        </Router>
      </QueryClientProvider>
    </StrictMode>,
  );
}
