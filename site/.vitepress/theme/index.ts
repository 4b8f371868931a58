// The default theme with the system's fonts, so that nothing is fetched, and the colours of the console.
import type { Theme } from "vitepress";
import DefaultTheme from "vitepress/theme-without-fonts";

import "./weir.css";

export default { extends: DefaultTheme } satisfies Theme;
