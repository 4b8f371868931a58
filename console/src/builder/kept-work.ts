// Work that this browser keeps until it is submitted, for each admin and each contract.

/** What the work began with: a submission rests on it, so that it is kept with the text. */
export interface WorkBase {
  text: string;
  etag: string;
}

export interface KeptWork {
  text: string;
  base: WorkBase;
}

/** The work of one admin on one contract, as one tab reads and keeps it. */
export class WorkKeeper {
  readonly #key: string;
  /** What is kept, as far as this tab read or wrote it. */
  #own: string | null = null;

  constructor(admin: string, contract: string) {
    this.#key = `weir.work.${JSON.stringify([admin, contract])}`;
  }

  read(): KeptWork | null {
    try {
      this.#own = localStorage.getItem(this.#key);
      const kept = JSON.parse(this.#own ?? "null");
      const isWork = typeof kept?.text === "string" && typeof kept.base?.text === "string" && typeof kept.base.etag === "string";
      return isWork ? { text: kept.text, base: { text: kept.base.text, etag: kept.base.etag } } : null;
    } catch {
      // Another program kept it, or the browser keeps nothing.
      return null;
    }
  }

  /** Stores a text while it differs from its base. What another tab stored is not removed. */
  keep(text: string, base: WorkBase) {
    try {
      if (text !== base.text) {
        this.#own = JSON.stringify({ text, base });
        localStorage.setItem(this.#key, this.#own);
      } else if (this.#own !== null && localStorage.getItem(this.#key) === this.#own) {
        localStorage.removeItem(this.#key);
      }
    } catch {
      // The browser stores nothing, or has no room: the work continues in the page.
    }
  }
}
