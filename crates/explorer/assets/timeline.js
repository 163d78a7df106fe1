// The timeline: what was alive over the run, the moment T and the range that everything below follows.
import { byId, button, element } from "./dom.js";
import { AXES } from "./clock.js";
import { bytes } from "./units.js";

const HEIGHT = 132;
/** On a small screen. */
const LOW = 96;
/** Pixels after which a press is a drag. */
const DRAG = 4;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Draws it in #timeline. `go` goes to another moment or range. */
export const timeline = ({ go, state }) => {
  const place = byId("timeline");
  const range = element("div", { class: "chosen-range", "aria-hidden": "true" });
  const handle = element("div", { class: "handle", role: "slider", tabindex: "0", "aria-label": "Moment T", "aria-valuemin": "0" });
  let clock = null;
  let plot = null;
  let axis = "ticks";
  let dragged = null;

  const x = (moment) => plot.valToPos(clock.placeOf(moment, axis) * AXES[axis].scale, "x");
  const momentAt = (position) => {
    const width = plot.over.clientWidth;
    const value = plot.posToVal(Math.max(0, Math.min(width, position)), "x");
    return position >= width - 1 ? "end" : clock.momentAt(value / AXES[axis].scale, axis);
  };

  /** The handle and the range, where they are now. */
  const mark = ({ at, from, to }) => {
    // A graph that has not been laid out has no places.
    if (!plot?.status) {
      return;
    }
    const left = x(from), right = x(to);
    range.style.left = `${left}px`;
    range.style.width = `${Math.max(2, right - left)}px`;
    range.hidden = from === "0" && to === "end";
    handle.style.left = `${x(at)}px`;
    const says = clock.says(at, axis);
    handle.setAttribute("aria-valuemax", clock.buckets);
    handle.setAttribute("aria-valuenow", clock.bucketOf(at));
    handle.setAttribute("aria-valuetext", says);
    byId("moment-says").textContent = says;
    byId("range-says").replaceChildren(
      `Range: ${range.hidden ? "the whole run" : `${clock.when(from, axis)} to ${clock.when(to, axis)}`} `,
      button("from T", () => go({ from: at === "end" ? String(clock.last) : at, to: clock.tickOf(to) <= clock.tickOf(at) ? "end" : to }), { title: "Let the range begin at T" }),
      " ",
      button("to T", () => go({ to: at, from: clock.tickOf(from) >= clock.tickOf(at) ? "0" : from }), { title: "Let the range end at T" }),
      " ",
      button("whole run", () => go({ from: "0", to: "end" }), { disabled: range.hidden }),
    );
  };

  const collections = (plot) => {
    const { ctx, bbox } = plot;
    const size = 4 * devicePixelRatio;
    ctx.save();
    ctx.fillStyle = colour("collection");
    for (const gc of clock.line.gcs) {
      const tick = gc.tick;
      if (tick === null) {
        continue;
      }
      const at = plot.valToPos(clock.placeOf(String(tick), axis) * AXES[axis].scale, "x", true);
      ctx.beginPath();
      ctx.moveTo(at - size, bbox.top);
      ctx.lineTo(at + size, bbox.top);
      ctx.lineTo(at, bbox.top + 2 * size);
      ctx.fill();
    }
    ctx.restore();
  };

  const draw = () => {
    plot?.destroy();
    place.replaceChildren();
    const { line } = clock;
    const scale = AXES[axis].scale;
    const xs = clock.scales[axis].map((value) => value * scale);
    const grid = { stroke: colour("grid"), width: 1 };
    const font = "12px system-ui, sans-serif";
    const most = Math.max(1, ...line.allocated, ...line.died);
    const last = xs.at(-1);
    const hidden = { show: false };
    plot = new libraries.uPlot({
      width: Math.max(280, document.documentElement.classList.contains("printing") ? 700 : place.clientWidth),
      height: matchMedia("(max-width: 40rem)").matches ? LOW : HEIGHT,
      legend: hidden,
      padding: [6, 14, 0, 0],
      cursor: { drag: { x: false, y: false, setScale: false }, points: { size: 6 }, y: false },
      scales: { x: { time: false, range: [0, last] }, y: { range: (_, __, high) => [0, high * 1.08 || 1] }, rate: { range: [0, most * 2.6] } },
      axes: [
        { stroke: colour("muted"), grid, ticks: grid, font, size: 24, gap: 2, ...(AXES[axis].steps ? { incrs: AXES[axis].steps } : {}), values: (_, ticks) => ticks.map(AXES[axis].write) },
        { stroke: colour("muted"), grid, ticks: grid, font, size: 72, incrs: AXES.bytes.steps, space: 26, values: (_, ticks) => ticks.map(bytes) },
      ],
      series: [
        {},
        { stroke: colour("live"), fill: colour("live-fill"), width: 1.5, points: hidden },
        { scale: "rate", stroke: colour("born"), width: 1, points: hidden },
        { scale: "rate", stroke: colour("died"), dash: [4, 3], width: 1, points: hidden },
      ],
      hooks: { draw: [collections], ready: [() => mark(state())] },
    }, [xs, clock.live, [line.allocated[0] ?? 0, ...line.allocated], [line.died[0] ?? 0, ...line.died]], place);
    plot.over.append(range, handle);
    plot.root.querySelector("canvas").setAttribute("aria-hidden", "true");
    listen(plot.over);
    const collected = line.gcs.length;
    byId("keys").replaceChildren(
      element("span", { class: "key live" }, "alive"),
      element("span", { class: "key born" }, "allocated"),
      element("span", { class: "key died" }, "died"),
      element("span", { class: "key collection" }, `${collected} collection${collected === 1 ? "" : "s"}`),
      element("span", { class: "most" }, `at most ${bytes(Math.max(0, ...clock.live))}`),
    );
  };

  const listen = (over) => {
    const positionOf = (event) => event.clientX - over.getBoundingClientRect().left;
    over.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) {
        return;
      }
      const isHandle = event.target === handle;
      dragged = { begin: positionOf(event), isHandle, isDrag: isHandle };
      over.setPointerCapture(event.pointerId);
      handle.focus({ preventScroll: true });
      event.preventDefault();
    });
    over.addEventListener("pointermove", (event) => {
      if (!dragged) {
        return;
      }
      const at = positionOf(event);
      dragged.isDrag ||= Math.abs(at - dragged.begin) > DRAG;
      if (dragged.isHandle) {
        go({ at: momentAt(at) }, { replace: true });
      } else if (dragged.isDrag) {
        mark({ ...state(), ...between(dragged.begin, at) });
      }
    });
    const between = (one, other) => ({ from: momentAt(Math.min(one, other)) , to: momentAt(Math.max(one, other)) });
    over.addEventListener("pointerup", (event) => {
      if (!dragged) {
        return;
      }
      const { begin, isHandle, isDrag } = dragged;
      dragged = null;
      const at = positionOf(event);
      if (isHandle) {
        return;
      }
      if (isDrag) {
        const chosen = between(begin, at);
        go({ from: chosen.from === "end" ? "0" : chosen.from, to: chosen.to });
      } else {
        go({ at: momentAt(at) });
      }
    });
    over.addEventListener("pointercancel", () => {
      dragged = null;
      mark(state());
    });
    over.addEventListener("dblclick", () => go({ from: "0", to: "end" }));
  };

  handle.addEventListener("keydown", (event) => {
    const now = clock.bucketOf(state().at);
    const step = event.shiftKey ? 10 : 1;
    const to = {
      ArrowRight: now + step, ArrowUp: now + step, ArrowLeft: now - step, ArrowDown: now - step,
      PageUp: now + 10, PageDown: now - 10, Home: 0, End: clock.buckets,
    }[event.key];
    if (to !== undefined) {
      event.preventDefault();
      go({ at: clock.bucketEnd(Math.max(0, Math.min(clock.buckets, to))) }, { replace: true });
    }
  });

  return {
    /** Of a trace, on an axis. */
    show: (its, on) => {
      clock = its;
      axis = on;
      draw();
    },
    mark,
    again: () => clock && draw(),
  };
};
