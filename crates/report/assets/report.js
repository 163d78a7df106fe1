// The report: graphs over time, moments, lifetimes.
"use strict";
(() => {
  const { uPlot } = libraries;
  const { data, byId, all, bytes, number, short, seconds, percent, amount, element, quoted, checked, onChange, drawn, drawers, show, widthOf, withButtons } = page;

  // ---- Graphs over time ----

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const charts = new Map();

  /** Draws a graph in the element with that id, in place of the one that is there. */
  const chart = (id, options, values) => {
    const place = byId(id);
    if (!place) {
      return null;
    }
    charts.get(id)?.destroy();
    place.replaceChildren();
    const grid = { stroke: colour("grid"), width: 1 };
    const axis = (more) => ({ stroke: colour("muted"), grid, ticks: grid, font: "12px system-ui, sans-serif", ...more });
    const made = new uPlot(
      {
        width: widthOf(place),
        height: options.height ?? 220,
        legend: { live: options.live ?? true },
        cursor: { sync: options.sync ? { key: options.sync } : undefined, points: { size: 6 }, ...options.cursor },
        scales: { x: { time: false }, y: { range: (_, low, high) => [Math.min(0, low), high || 1] }, ...options.scales },
        axes: options.axes.map(axis),
        series: options.series,
        hooks: options.hooks ?? {},
        plugins: [],
      },
      values,
      place,
    );
    made.over.setAttribute("role", "img");
    made.over.setAttribute("aria-label", options.label);
    charts.set(id, made);
    return made;
  };

  const ofBytes = { size: 84, incrs: page.byteSteps, values: (_, ticks) => ticks.map(bytes) };

  const axisOf = (unit) => data.axes.find((axis) => axis.unit === unit);
  const axisNames = { nanos: "seconds since the start", ticks: "calls and returns", bytes: "bytes allocated" };
  const onAxis = { nanos: (value) => seconds(value), ticks: short, bytes };
  const scaleOf = (unit) => (unit === "nanos" ? 1e-9 : 1);
  const sums = (values, from) => {
    let sum = from;
    return values.map((value) => (sum += value));
  };

  /** Live bytes or objects at the end of each bin. */
  const live = (axis, measure) => {
    const [born, died, initial] = measure === "bytes"
      ? [axis.bornBytes, axis.diedBytes, data.initialBytes]
      : [axis.bornObjects, axis.diedObjects, data.initialObjects];
    return sums(born.map((value, index) => value - (died[index] ?? 0)), data.hasDeaths ? initial : 0);
  };

  /** Where a wall time is on an axis. */
  const placeOf = (axis, time) => {
    if (axis.unit === "nanos") {
      return time;
    }
    let index = axis.nanos.findIndex((value) => value >= time * 1e9);
    index = index < 0 ? axis.nanos.length - 1 : index;
    return (index + 1) * axis.width * scaleOf(axis.unit);
  };

  const marks = (places) => (plot) => {
    const { ctx } = plot;
    ctx.save();
    ctx.fillStyle = colour("collection");
    const bottom = plot.bbox.top + plot.bbox.height;
    const size = 5 * devicePixelRatio;
    for (const place of places) {
      const x = plot.valToPos(place, "x", true);
      if (x >= plot.bbox.left && x <= plot.bbox.left + plot.bbox.width) {
        ctx.beginPath();
        ctx.moveTo(x - size, bottom);
        ctx.lineTo(x + size, bottom);
        ctx.lineTo(x, bottom - 2 * size);
        ctx.fill();
      }
    }
    ctx.restore();
  };

  const overTime = () => {
    const unit = checked("axis") ?? data.axes[0]?.unit;
    const measure = checked("axis-measure") ?? "bytes";
    const axis = axisOf(unit);
    if (!axis) {
      return;
    }
    const scale = scaleOf(unit);
    const x = axis.bornBytes.map((_, index) => (index + 1) * axis.width * scale);
    const show = amount[measure];
    const there = live(axis, measure);
    const what = data.hasDeaths ? "alive" : "allocated so far";
    const places = data.gcs.map((gc) => placeOf(axis, gc.at));
    const xAxis = { label: axisNames[unit], labelFont: "12px system-ui, sans-serif", ...(unit === "bytes" ? { incrs: page.byteSteps } : {}), values: (_, ticks) => ticks.map(onAxis[unit]) };
    const yAxis = (label) => ({
      ...(measure === "bytes" ? ofBytes : { size: 84, values: (_, ticks) => ticks.map(short) }), label, labelFont: "12px system-ui, sans-serif",
    });
    const xSeries = { label: axisNames[unit], value: (_, value) => (value == null ? "" : onAxis[unit](value)) };
    const most = Math.max(0, ...there);
    chart("chart-live", {
      sync: "time",
      label: `${what} over ${axisNames[unit]}: at most ${show(most)}, at the end ${show(there.at(-1) ?? 0)}; ${data.gcs.length} collections`,
      axes: [xAxis, yAxis(what)],
      series: [
        xSeries,
        { label: what, stroke: colour("live"), fill: colour("live-fill"), width: 1.5, points: { show: false }, value: (_, value) => (value == null ? "" : show(value)) },
      ],
      hooks: { draw: [marks(places)] },
    }, [x, there]);
    const per = { nanos: [1 / (axis.width * 1e-9), "second"], ticks: [1000 / axis.width, "1000 calls and returns"], bytes: [1024 / axis.width, "KiB allocated"] }[unit];
    const rate = (values) => values.map((value) => value * per[0]);
    const born = rate(measure === "bytes" ? axis.bornBytes : axis.bornObjects);
    const died = rate(measure === "bytes" ? axis.diedBytes : axis.diedObjects);
    const series = [
      xSeries,
      { label: "allocated", stroke: colour("born"), width: 1.5, points: { show: false }, value: (_, value) => (value == null ? "" : `${show(value)} per ${per[1]}`) },
    ];
    const values = [x, born];
    if (data.hasDeaths) {
      series.push({ label: "died", stroke: colour("died"), width: 1.5, points: { show: false }, value: (_, value) => (value == null ? "" : `${show(value)} per ${per[1]}`) });
      values.push(died);
    }
    // What is closed has no width.
    if (!byId("rates").open) {
      return;
    }
    chart("chart-rate", {
      sync: "time",
      label: `Allocation ${data.hasDeaths ? "and deaths " : ""}per ${per[1]}`,
      axes: [xAxis, yAxis(`per ${per[1]}`)],
      series,
    }, values);
  };
  if (data.axes.length > 0) {
    const first = document.querySelector('input[name="axis"]');
    first.checked = true;
  }
  onChange("axis", overTime);
  onChange("axis-measure", overTime);
  drawers.overview = overTime;
  byId("rates").addEventListener("toggle", overTime);

  // ---- Lines of source ----

  /** The line of a site, which opens those around it, as in the tables; nothing if it is not known. */
  const sourceOf = (site, isOpen = false) => {
    if (!Object.hasOwn(data.sources, site)) {
      return [];
    }
    const { file, line, first, lines } = data.sources[site];
    const rows = lines.map((text, index) =>
      element("span", { class: first + index === line ? "line here" : "line", "data-line": first + index }, `${text}\n`));
    const made = element("details", { class: "source" },
      element("summary", {}, element("code", {}, (lines[line - first] ?? "").trim())),
      element("p", { class: "file" }, `${file}:${line}`),
      element("pre", { tabindex: "0", role: "group", "aria-label": `Around ${file}:${line}` }, ...rows));
    made.open = isOpen;
    return [made];
  };

  // ---- Flame graph ----

  /** From a box to the lifetimes of its class. */
  const classOf = (node) => {
    const place = byId("flame-class");
    place.replaceChildren();
    if (!node) {
      return;
    }
    if (node.data.kind !== "class" && node.data.kind !== "site") {
      return;
    }
    const [name, site] = node.data.kind === "site" ? node.data.name.split("  ") : [node.data.name];
    const link = element("a", { href: "#lifetimes" }, "Lifetimes of ", element("code", {}, name));
    link.addEventListener("click", () => {
      const filter = document.querySelector('input[data-filter="lifetimes/classes"]');
      if (filter) {
        filter.value = name;
        filter.dispatchEvent(new Event("input"));
      }
      const at = data.lifetimes.classes.findIndex((line) => line.name === name);
      if (at >= 0) {
        ages.shown = data.lifetimes.classes[at];
        drawn.has("lifetimes") && drawAges();
      }
    });
    place.append(element("p", {}, link), ...(site ? sourceOf(site, true) : []));
  };

  drawers.allocation = flameGraph({ colour: (node) => node.kind, onClick: classOf });

  // ---- Alive at a moment ----

  const aliveCommand = (moment, table) => `et-trace report ${data.trace} --show ${table} --at tick:${moment.tick}`;

  /** Rows of what was alive most at that moment. */
  const aliveTable = (name, title, columns, at, term) => {
    const place = byId(`alive-${name}`);
    const series = data.alive[name];
    const whole = data.alive.bytes[at];
    const command = aliveCommand(data.alive.moments[at], `alive/${name}`);
    const shown = series
      .map((one) => ({ one, bytes: one.bytes[at], objects: one.objects[at] }))
      .filter(({ one, objects }) => objects > 0 && (term === "" || `${one.name} ${one.detail}`.toLowerCase().includes(term)))
      .sort((a, b) => b.bytes - a.bytes)
      .slice(0, 30);
    if (shown.length === 0) {
      place.replaceChildren(element("p", {}, "Nothing."));
      return;
    }
    const head = element("tr", {}, ...columns.map((column) => element("th", { scope: "col" }, column)),
      ...["Bytes", "Share", "Objects"].map((column) => element("th", { scope: "col", class: "number" }, column)),
      element("th", { scope: "col", class: "command-cell" }, "Command"));
    const rows = shown.map(({ one, bytes: size, objects }) => {
      const row = element("tr", {}, element("th", { scope: "row" }, element("code", {}, one.name), ...(name === "sites" ? sourceOf(one.name) : [])));
      if (columns.length > 1) {
        row.append(element("td", { class: one.detail.includes(" ← ") ? "name long" : "name" }, element("code", {}, one.detail)));
      }
      row.append(
        element("td", { class: "number" }, bytes(size)),
        element("td", { class: "number" }, percent(size, whole)),
        element("td", { class: "number" }, number(objects)),
        element("td", { class: "command-cell" }, element("details", { class: "command" },
          element("summary", { "aria-label": `Show the command that prints ${one.name}` }, "Show"),
          element("code", {}, `${command} --match ${quoted(one.name)}`))),
      );
      return row;
    });
    const table = element("table", { "aria-label": title }, element("thead", {}, head), element("tbody", {}, ...rows));
    place.replaceChildren(withButtons(element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `${title}, table` }, table)));
  };

  const drawMoment = () => {
    const { alive } = data;
    const slider = byId("moment");
    if (!alive || !slider) {
      return;
    }
    const at = Number(slider.value);
    const moment = alive.moments[at];
    const last = alive.moments.at(-1);
    const time = axisOf("nanos") ? `${seconds(moment.nanos / 1e9)}, ` : "";
    const says = `${percent(moment.tick, last.tick)} of all ${data.ticksOf}, ${time}${bytes(moment.bytes)} allocated: ` +
      `${bytes(alive.bytes[at])} alive in ${amount.objects(alive.objects[at])}`;
    byId("moment-says").textContent = says;
    slider.setAttribute("aria-valuetext", says);
    byId("moment-command").textContent = aliveCommand(moment, "alive");
    byId("heap-command").textContent = `et-trace heap ${data.trace} --at tick:${moment.tick} --classes`;
    const term = byId("alive-search").value.toLowerCase();
    aliveTable("classes", "Classes alive then", ["Class"], at, term);
    aliveTable("sites", "Sites alive then", ["Site", "Allocates"], at, term);
    aliveTable("contexts", "Contexts alive then", ["Class", "Made in"], at, term);
    charts.get("chart-moment")?.redraw(false);
  };

  const drawAlive = () => {
    const { alive } = data;
    if (!alive) {
      return;
    }
    const unit = checked("alive-axis") ?? "ticks";
    // Moments are as far apart as calls and returns are; a trace may have no times.
    const x = alive.moments.map((moment) => ({ nanos: moment.nanos * 1e-9, ticks: moment.tick, bytes: moment.bytes })[unit]);
    const mark = (plot) => {
      const at = plot.valToPos(x[Number(byId("moment").value)], "x", true);
      plot.ctx.save();
      plot.ctx.strokeStyle = colour("collection");
      plot.ctx.lineWidth = 2 * devicePixelRatio;
      plot.ctx.beginPath();
      plot.ctx.moveTo(at, plot.bbox.top);
      plot.ctx.lineTo(at, plot.bbox.top + plot.bbox.height);
      plot.ctx.stroke();
      plot.ctx.restore();
    };
    const made = chart("chart-moment", {
      height: 180,
      label: `Live bytes at ${x.length} moments, at most ${bytes(Math.max(0, ...alive.bytes))}`,
      cursor: { drag: { x: false, y: false } },
      axes: [
        { label: axisNames[unit], labelFont: "12px system-ui, sans-serif", ...(unit === "bytes" ? { incrs: page.byteSteps } : {}), values: (_, ticks) => ticks.map(onAxis[unit]) },
        ofBytes,
      ],
      series: [
        { label: axisNames[unit], value: (_, value) => (value == null ? "" : onAxis[unit](value)) },
        { label: "alive", stroke: colour("live"), fill: colour("live-fill"), width: 1.5, value: (_, value) => (value == null ? "" : bytes(value)) },
      ],
      hooks: { draw: [mark] },
    }, [x, alive.bytes]);
    made?.over.addEventListener("click", () => {
      if (made.cursor.idx != null) {
        byId("moment").value = made.cursor.idx;
        drawMoment();
      }
    });
    drawMoment();
  };
  const aliveAxis = document.querySelector('input[name="alive-axis"]');
  if (aliveAxis) {
    aliveAxis.checked = true;
  }
  onChange("alive-axis", drawAlive);
  byId("moment")?.addEventListener("input", drawMoment);
  byId("alive-search")?.addEventListener("input", drawMoment);
  drawers.alive = drawAlive;

  // ---- Lifetimes ----

  const ages = { shown: data.lifetimes.all };

  const drawAges = () => {
    const place = byId("chart-ages");
    if (!place) {
      return;
    }
    const measure = checked("ages-measure") ?? "bytes";
    const { shown } = ages;
    byId("ages-of").textContent = shown.detail ? `${shown.name}: ${shown.detail}` : shown.name;
    const died = shown.died[measure];
    const alive = shown.alive[measure === "bytes" ? 1 : 0];
    // In bin n are those that saw at least 2^(n-1) and less than 2^n bytes allocated; what is alive at the end stands behind.
    const last = Math.max(died.length, 1);
    const x = [...Array(last + 2).keys()];
    const ofDead = x.map((bin) => (bin < last ? (died[bin] ?? 0) : null));
    const ofAlive = x.map((bin) => (bin === last + 1 ? alive : null));
    const until = (bin) => (bin === last + 1 ? "alive" : bin >= last || !Number.isInteger(bin) || bin < 0 ? "" : `< ${bytes(2 ** bin)}`);
    const bars = uPlot.paths.bars({ size: [0.85, 80] });
    const value = (_, count) => (count == null ? "" : amount[measure](count));
    chart("chart-ages", {
      height: 260,
      label: `${amount[measure](died.reduce((a, b) => a + b, 0))} died, ${amount[measure](alive)} alive at the end, by age`,
      scales: { x: { time: false, range: [-0.6, last + 1.6] } },
      cursor: { drag: { x: false, y: false } },
      axes: [
        { label: "bytes allocated between birth and death", labelFont: "12px system-ui, sans-serif", space: 64, values: (_, ticks) => ticks.map(until) },
        measure === "bytes" ? ofBytes : { size: 84, values: (_, ticks) => ticks.map(short) },
      ],
      series: [
        { label: "age", value: (_, bin) => (bin == null ? "" : until(bin)) },
        { label: "died", stroke: colour("died"), fill: colour("died-fill"), paths: bars, points: { show: false }, value },
        { label: "alive at the end", stroke: colour("live"), fill: colour("live-fill"), paths: bars, points: { show: false }, value },
      ],
    }, [x, ofDead, ofAlive]);
  };
  onChange("ages-measure", drawAges);
  byId("ages-all")?.addEventListener("click", () => {
    ages.shown = data.lifetimes.all;
    drawAges();
  });
  drawers.lifetimes = drawAges;
  for (const [name, lines] of [["classes", data.lifetimes.classes], ["sites", data.lifetimes.sites]]) {
    all(`table[data-table="lifetimes/${name}"] tbody tr`).forEach((row, index) => {
      const cell = row.querySelector("th");
      const source = cell.querySelector(".source");
      const name = [...cell.childNodes].filter((node) => node !== source);
      const button = element("button", { type: "button", class: "row", title: "Show their age at death" }, ...name);
      button.addEventListener("click", () => {
        ages.shown = lines[index];
        drawAges();
        byId("chart-ages").scrollIntoView({ block: "nearest" });
      });
      cell.replaceChildren(button, ...(source ? [source] : []));
    });
  }

  // ---- Threads and collections ----

  drawers.threads = () => {
    if (data.gcs.length === 0) {
      return;
    }
    const axis = axisOf("nanos");
    const there = axis && data.hasDeaths ? live(axis, "bytes") : null;
    const x = data.gcs.map((gc) => gc.at);
    const points = { show: true, size: 6 };
    const series = [
      { label: "seconds since the start", value: (_, value) => (value == null ? "" : seconds(value)) },
      { label: "in use after a collection", stroke: colour("born"), width: 1.5, points, value: (_, value) => (value == null ? "" : bytes(value)) },
    ];
    const values = [x, data.gcs.map((gc) => gc.used)];
    if (there) {
      series.push({ label: "actually alive", stroke: colour("live"), width: 1.5, points, value: (_, value) => (value == null ? "" : bytes(value)) });
      values.push(x.map((at) => there[Math.min(Math.floor((at * 1e9) / axis.width), there.length - 1)]));
    }
    chart("chart-gcs", {
      label: `Heap in use after ${data.gcs.length} collections`,
      axes: [
        { label: axisNames.nanos, labelFont: "12px system-ui, sans-serif", values: (_, ticks) => ticks.map(seconds) },
        ofBytes,
      ],
      series,
    }, values);
  };

  show(location.hash.slice(1), false);
})();
