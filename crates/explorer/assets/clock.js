// The three ways to say when: calls and returns (ticks), bytes allocated, seconds.
import { bytes, number, objects, seconds, short, byteSteps } from "./units.js";

export const AXES = {
  nanos: { name: "seconds", label: "seconds since the start", write: seconds, scale: 1e-9 },
  bytes: { name: "bytes allocated", label: "bytes allocated", write: bytes, scale: 1, steps: byteSteps },
  ticks: { name: "calls", label: "calls and returns", write: short, scale: 1 },
};

/** Where `value` is among values that ascend, with a fraction. */
const position = (values, value) => {
  let low = 0, high = values.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low === 0 || values[low] <= value) {
    return low;
  }
  return low - (values[low] - value) / (values[low] - values[low - 1]);
};
const valueAt = (values, at) => {
  const left = Math.min(Math.floor(at), values.length - 1);
  const right = Math.min(left + 1, values.length - 1);
  return values[left] + (values[right] - values[left]) * (at - left);
};

/** What a trace says about when; `line` is the answer to `timeline`. */
export const clockOf = (line, trace) => {
  const from0 = (values) => [0, ...values];
  const scales = { ticks: from0(line.ticks), bytes: from0(line.bytes), ...(line.nanos ? { nanos: from0(line.nanos) } : {}) };
  const live = [line.live[0] ?? 0, ...line.live];
  const liveObjects = [line.liveObjects[0] ?? 0, ...line.liveObjects];
  const last = scales.ticks.at(-1);
  // Without calls the clock itself counts bytes.
  const isByBytes = trace.clock === "bytes";
  const axes = ["nanos", "bytes", "ticks"].filter((axis) => scales[axis] && scales[axis].at(-1) > 0 && !(isByBytes && axis === "ticks"));
  const tickOf = (moment) => (moment === "end" ? last : Math.min(Number(moment) || 0, last));
  /** On an axis. */
  const placeOf = (moment, axis) => valueAt(scales[axis], position(scales.ticks, tickOf(moment)));
  /** The tick at a place of an axis. */
  const momentAt = (place, axis) => {
    const tick = Math.round(valueAt(scales.ticks, position(scales[axis], place)));
    return tick >= last ? "end" : String(Math.max(0, tick));
  };
  const write = (place, axis) => AXES[axis].write(place * AXES[axis].scale);
  const when = (moment, axis = axes[0]) => (axis === "ticks" ? `tick ${number(tickOf(moment))}` : write(placeOf(moment, axis), axis));
  return {
    last, axes, tickOf, placeOf, momentAt, when, scales, live, liveObjects, line,
    /** Which bucket a moment is in, from 0: before anything. */
    bucketOf: (moment) => Math.round(position(scales.ticks, tickOf(moment))),
    bucketEnd: (bucket) => (bucket >= line.ticks.length ? "end" : String(scales.ticks[Math.max(0, bucket)])),
    buckets: line.ticks.length,
    /** Of a point that an answer gives. */
    point: (point) => {
      if (!point) {
        return "";
      }
      const axis = axes[0];
      if (point.tick === 0 && !point[axis]) {
        return "the start";
      }
      return point[axis] === null || point[axis] === undefined ? `tick ${number(point.tick)}` : write(point[axis], axis);
    },
    says: (moment, axis) => {
      const at = position(scales.ticks, tickOf(moment));
      const tick = `tick ${number(tickOf(moment))}`;
      const time = axis === "ticks" ? tick : isByBytes ? when(moment, axis) : `${when(moment, axis)} (${tick})`;
      // Known at the ends of buckets; between them it is what lies between.
      const [about, count] = Number.isInteger(at) ? ["", objects(liveObjects[at])] : ["about ", `${short(valueAt(liveObjects, at))} objects`];
      return `${moment === "end" ? "At the end, " : "At "}${time}: ${about}${bytes(valueAt(live, at))} ${trace.hasDeaths ? "alive" : "allocated so far"} in ${count}`;
    },
  };
};
