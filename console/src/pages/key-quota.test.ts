import { expect, test } from "vitest";
import { quotaWords, readQuota } from "./key-quota";

test("a quota is a whole number of calls, and nothing is the gateway's own", () => {
  expect(readQuota(" ")).toEqual({});
  expect(readQuota("1000")).toEqual({ calls: 1000 });
  expect(readQuota("20,000")).toEqual({ calls: 20_000 });
  for (const bad of ["0", "-1", "1.5", "1e3", "4294967296", "many"]) {
    const { calls, fault } = readQuota(bad);
    expect(calls, bad).toBeUndefined();
    expect(fault, bad).toBeTruthy();
  }
});

test("a key's quotas are read a day and a month", () => {
  expect(quotaWords({ quota_day: 1000, quota_month: 20_000 })).toEqual(["1,000 a day", "20,000 a month"]);
  expect(quotaWords({ quota_day: null, quota_month: 5 })).toEqual(["5 a month"]);
  expect(quotaWords({})).toEqual([]);
});
