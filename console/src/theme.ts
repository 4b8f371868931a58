// Light, dark, or as the system has it.
export type Theme = "system" | "light" | "dark";
const STORED = "weir.theme";

export function currentTheme(): Theme {
  const stored = localStorage.getItem(STORED);
  return stored === "light" || stored === "dark" ? stored : "system";
}

export function applyTheme(theme: Theme = currentTheme()) {
  if (theme === "system") {
    localStorage.removeItem(STORED);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(STORED, theme);
    document.documentElement.dataset.theme = theme;
  }
}
