// Light or dark, as the system has it or as the visitor says. It is the visitor's own, and so not in the address.

import { useState } from "preact/hooks";

const KEY = "fencegate-theme";
const NEXT: Record<string, string> = { auto: "light", light: "dark", dark: "auto" };

function stored(): string {
  try {
    return localStorage.getItem(KEY) ?? "auto";
  } catch {
    return "auto";
  }
}

function apply(theme: string): void {
  if (theme === "auto") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.dataset["theme"] = theme;
  dispatchEvent(new Event("themechange"));
}

apply(stored());

export function Theme() {
  const [theme, setTheme] = useState(stored);
  const turn = () => {
    const next = NEXT[theme] ?? "auto";
    setTheme(next);
    apply(next);
    try {
      localStorage.setItem(KEY, next);
    } catch {
      // Then it holds until the page is left.
    }
  };
  return (
    <button type="button" class="theme small" onClick={turn} aria-label={`Colours: ${theme}`}>
      <span aria-hidden="true">{{ auto: "◐", light: "○", dark: "●" }[theme]}</span> {theme}
    </button>
  );
}
