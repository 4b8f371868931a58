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

/** Sums by one label, the largest first. */
export function totalsBy(samples: Sample[], name: string, label: string): [string, number][] {
  const sums = new Map<string, number>();
  for (const sample of samples) {
    const key = sample.labels[label];
    if (sample.name === name && key !== undefined) sums.set(key, (sums.get(key) ?? 0) + sample.value);
  }
  return [...sums].filter(([, sum]) => sum > 0).sort(([, a], [, b]) => b - a);
}

/** The quantile of a histogram, in its unit: between the bounds of the bucket that it is in. */
export function quantile(samples: Sample[], name: string, part: number, labels: Record<string, string> = {}): number | null {
  const buckets = new Map<number, number>();
  for (const sample of samples) {
    const fits = Object.entries(labels).every(([key, value]) => sample.labels[key] === value);
    if (sample.name !== `${name}_bucket` || !fits) continue;
    const bound = numberOf(sample.labels.le ?? "");
    buckets.set(bound, (buckets.get(bound) ?? 0) + sample.value);
  }
  const bounds = [...buckets].sort(([a], [b]) => a - b);
  const all = bounds.at(-1)?.[1] ?? 0;
  if (all === 0) return null;
  let [lower, before] = [0, 0];
  for (const [upper, until] of bounds) {
    if (until >= part * all) {
      if (upper === Infinity) return lower;
      return lower + ((upper - lower) * (part * all - before)) / (until - before || 1);
    }
    [lower, before] = [upper, until];
  }
  return lower;
}

/** What one counter gained a second between two readings. A counter that fell began again. */
export function rate(before: { at: number; value: number }, now: { at: number; value: number }): number {
  const seconds = (now.at - before.at) / 1000;
  if (seconds <= 0) return 0;
  return (now.value >= before.value ? now.value - before.value : now.value) / seconds;
}
