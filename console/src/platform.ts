// What the keys of this machine are called.
const isApple = /Mac|iPhone|iPad/.test(navigator.platform);

export const SEARCH_KEYS = isApple ? "⌘K" : "Ctrl K";
export const CALL_KEYS = isApple ? "⌘ Enter" : "Ctrl Enter";
