// Reads what Prometheus reads: the gateway's figures, as text.

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

export function parseMetrics(text: string): Sample[] {
  return text.split("\n").flatMap((line) => {
    const parts = line.startsWith("#") ? null : LINE.exec(line);
    if (!parts) return [];
    const labels = Object.fromEntries([...(parts[2] ?? "").matchAll(LABEL)].map(([, name, value]) => [name, unescaped(value ?? "")]));
    return [{ name: parts[1] ?? "", labels, value: numberOf(parts[3] ?? "") }];
  });
}

const numberOf = (text: string) => (text === "+Inf" ? Infinity : text === "-Inf" ? -Infinity : Number(text));

const unescaped = (text: string) => text.replace(/\\(.)/g, (_, char: string) => (char === "n" ? "\n" : char));

export function total(samples: Sample[], name: string, labels: Record<string, string> = {}): number {
  return samples
    .filter((sample) => sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
    .reduce((sum, sample) => sum + sample.value, 0);
}
