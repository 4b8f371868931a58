import { expect, test } from "vitest";
import { parseMetrics, total } from "./metrics";

const text = `# HELP weir_calls_total Calls.
# TYPE weir_calls_total counter
weir_calls_total{outcome="ok",tool="a"} 3
weir_calls_total{outcome="failed",tool="b \\"c\\""} 2
weir_calls_total{outcome="ok",tool="d"} 0
plain 1.5
took_bucket{le="0.1"} 5
took_bucket{le="0.2"} 10
took_bucket{le="+Inf"} 10
`;
const samples = parseMetrics(text);

test("samples are read with their labels", () => {
  expect(samples[1]).toEqual({ name: "weir_calls_total", labels: { outcome: "failed", tool: 'b "c"' }, value: 2 });
  expect(total(samples, "weir_calls_total")).toBe(5);
  expect(total(samples, "weir_calls_total", { outcome: "ok" })).toBe(3);
  expect(total(samples, "plain")).toBe(1.5);
});
