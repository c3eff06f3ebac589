// Objects as JSON on standard input; what is wrong with each on standard output: a value that does not fit, a field that is not known.
import { readFileSync } from "node:fs";
import * as kinds from "@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1";

// A schema reads every field that it knows, so those that it never reads are unknown to it.
function watched(value, path, unread) {
  if (value === null || typeof value !== "object") return value;
  const inner = new Map(Object.keys(value).map((key) => [key, watched(value[key], `${path}/${key}`, unread)]));
  if (!Array.isArray(value)) for (const key of inner.keys()) unread.add(`${path}/${key}`);
  return new Proxy(value, {
    get(target, key) {
      unread.delete(`${path}/${String(key)}`);
      return inner.has(key) ? inner.get(key) : target[key];
    },
  });
}

function wrong(thing) {
  const unread = new Set();
  try {
    new kinds[thing.kind](thing).validate();
    kinds[thing.kind].prototype.validate.call(watched(thing, "", unread));
  } catch (error) {
    return [error.message];
  }
  return [...unread].map((path) => `${path} is not known`);
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(wrong)));
