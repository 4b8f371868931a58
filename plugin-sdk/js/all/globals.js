// What libraries of JavaScript expect of the outside and the interpreter lacks: `console`, chance, texts as bytes. It is imported before
// them, and works from the first `begin` on: while a plugin is built there is neither a log nor chance.

/** A caller who listens to the log does not hear a line with this field. */
export const LOG_ONLY = JSON.stringify({ "weir.log_only": true });

/** The interfaces of the host that a running plugin may call. */
let host;
/** Every export calls this first, with the interfaces `log` and `random` as the plugin imports them. */
export const begin = (log, random) => {
  host ??= { log, random };
};

/** JSON has neither a `Map` nor a `Set`, and writes both as `{}` unless they define their own form. */
export const held = (value) => {
  if (typeof value?.toJSON === "function") return value;
  if (value instanceof Map) return Object.fromEntries(value);
  return value instanceof Set ? [...value] : value;
};
export const json = (value) => JSON.stringify(value, (_, inner) => held(inner));

/** As a text, which is all that the host takes: with anything else the call would trap, and a trap has no message. */
export const shown = (value) => {
  if (typeof value === "string") return value;
  try {
    const plain = typeof value === "object" && value !== null && !(value instanceof Error);
    return (plain && json(value)) || String(value);
  } catch {
    return "what has no text";
  }
};

const print = (level) => (...values) => host?.log.write(level, values.map(shown).join(" "), LOG_ONLY);
/** What libraries print may hold a secret, so that no caller hears it. */
globalThis.console ??= {
  trace: print("debug"), debug: print("debug"), log: print("info"), info: print("info"), warn: print("warn"), error: print("error"),
};

// ---- chance ----

/**
 * The interpreter keeps the seed of its build, so that `Math.random` drew the same numbers in every instance. Here each draws its own:
 * xoshiro128**, from a seed of the host's.
 */
let seed;
const drawn = () => {
  seed ??= new Uint32Array(new Uint8Array(bytes(16)).buffer);
  const turned = Math.imul(seed[1], 5);
  const word = Math.imul((turned << 7) | (turned >>> 25), 9) >>> 0;
  const shifted = seed[1] << 9;
  seed[2] ^= seed[0];
  seed[3] ^= seed[1];
  seed[1] ^= seed[2];
  seed[0] ^= seed[3];
  seed[2] ^= shifted;
  seed[3] = (seed[3] << 11) | (seed[3] >>> 21);
  return word;
};
const ofTheBuild = Math.random;
Math.random = () => (host ? ((drawn() >>> 5) * 2 ** 26 + (drawn() >>> 6)) / 2 ** 53 : ofTheBuild());

const bytes = (length) => {
  if (!host) throw new Error("there is no chance while a plugin is built: draw it in a function that a call runs");
  return host.random.bytes(length);
};
globalThis.crypto ??= {
  getRandomValues: (array) => {
    new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(bytes(array.byteLength));
    return array;
  },
  randomUUID: () => {
    const drawn = new Uint8Array(bytes(16));
    [drawn[6], drawn[8]] = [(drawn[6] & 0x0f) | 0x40, (drawn[8] & 0x3f) | 0x80];
    const digits = [...drawn].map((byte) => byte.toString(16).padStart(2, "0")).join("");
    return digits.replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  },
};

// ---- texts as bytes ----

/** `TextEncoder`, as the Encoding Standard has it. */
export class Utf8Encoder {
  encoding = "utf-8";

  encode(given = "") {
    const written = [];
    for (const char of `${given}`) {
      const whole = char.codePointAt(0);
      const code = whole >= 0xd800 && whole < 0xe000 ? 0xfffd : whole;
      const further = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
      written.push([0, 0xc0, 0xe0, 0xf0][further] | (code >> (6 * further)));
      for (let at = further - 1; at >= 0; at -= 1) written.push(0x80 | ((code >> (6 * at)) & 0x3f));
    }
    return new Uint8Array(written);
  }
}
globalThis.TextEncoder ??= Utf8Encoder;

/** How many characters become a text at a time. */
const CHARS_MAX = 4096;

/** `TextDecoder` of UTF-8, as the Encoding Standard has it. Bytes that are not UTF-8 become U+FFFD. */
export class Utf8Decoder {
  encoding = "utf-8";

  constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
    if (!/^\s*utf-?8\s*$/i.test(label)) throw new RangeError(`\`${label}\` is not an encoding of a plugin: it has utf-8 alone`);
    Object.assign(this, { fatal, ignoreBOM });
  }

  decode(given = new Uint8Array(), { stream = false } = {}) {
    if (stream) throw new TypeError("a plugin decodes whole texts: leave out `stream`");
    const bytes = ArrayBuffer.isView(given) ? new Uint8Array(given.buffer, given.byteOffset, given.byteLength) : new Uint8Array(given);
    const codes = codesOf(bytes, this.fatal);
    const first = codes[0] === 0xfeff && !this.ignoreBOM ? 1 : 0;
    const parts = [];
    for (let at = first; at < codes.length; at += CHARS_MAX) parts.push(String.fromCodePoint(...codes.slice(at, at + CHARS_MAX)));
    return parts.join("");
  }
}
globalThis.TextDecoder ??= Utf8Decoder;

/** The characters of UTF-8, with one U+FFFD for each part that begins well and does not end so. */
const codesOf = (bytes, fatal) => {
  const codes = [];
  let [code, needed, low, high] = [0, 0, 0x80, 0xbf];
  const refuse = () => {
    if (fatal) throw new TypeError("the bytes are not UTF-8");
    codes.push(0xfffd);
  };
  for (const byte of bytes) {
    if (needed > 0 && byte >= low && byte <= high) {
      [code, needed, low, high] = [(code << 6) | (byte & 0x3f), needed - 1, 0x80, 0xbf];
      if (needed === 0) codes.push(code);
      continue;
    }
    if (needed > 0) refuse();
    [needed, low, high] = [0, 0x80, 0xbf];
    if (byte < 0x80) codes.push(byte);
    else if (byte >= 0xc2 && byte <= 0xdf) [code, needed] = [byte & 0x1f, 1];
    else if (byte >= 0xe0 && byte <= 0xef) [code, needed, low, high] = [byte & 0x0f, 2, byte === 0xe0 ? 0xa0 : 0x80, byte === 0xed ? 0x9f : 0xbf];
    else if (byte >= 0xf0 && byte <= 0xf4) [code, needed, low, high] = [byte & 0x07, 3, byte === 0xf0 ? 0x90 : 0x80, byte === 0xf4 ? 0x8f : 0xbf];
    else refuse();
  }
  if (needed > 0) refuse();
  return codes;
};

// ---- what there is not ----

const missing = (name, instead) => {
  globalThis[name] ??= () => {
    throw new TypeError(`a plugin has no \`${name}\`: ${instead}`);
  };
};
missing("fetch", "call `http.send`, with a connection that its operator grants");
for (const name of ["setTimeout", "setInterval", "setImmediate"]) {
  missing(name, "what a call begins has ended when it returns, so call the function itself");
}
