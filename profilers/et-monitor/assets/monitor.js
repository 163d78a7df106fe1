// The monitor's page: what comes by server-sent events, drawn. Names out of programs only ever become text.
"use strict";
(() => {
  const { uPlot } = libraries;
  const { byId, bytes, byteSteps, number, element, checked, onChange, drawers } = page;
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  const nanos = (value) => (value < 1e6 ? `${(value / 1e3).toFixed(0)} µs` : value < 1e9 ? `${(value / 1e6).toFixed(1)} ms` : `${(value / 1e9).toFixed(2)} s`);

  let vms = [];
  let selected = null;
  /** The VM that is shown. */
  let chosen = null;
  let source = null;
  const chosenVm = () => vms.find((vm) => vm.id === chosen);
  const can = (feature) => chosenVm()?.features.includes(feature) ?? false;

  // ---- The API ----

  const say = (text, failed = false) => {
    byId("notice").textContent = text;
    byId("notice").classList.toggle("failed", failed);
  };
  const call = async (path, body) => {
    const options = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
    const answer = await fetch(`api/${path}`, options);
    const text = await answer.text();
    let value;
    try {
      value = JSON.parse(text);
    } catch {
      value = { error: text.trim() || `${answer.status} ${answer.statusText}` };
    }
    if (!answer.ok) {
      throw new Error(value.error ?? String(answer.status));
    }
    return value;
  };
  /** A button whose work takes a while. */
  const onClick = (id, work) =>
    byId(id).addEventListener("click", async () => {
      const button = byId(id);
      button.disabled = true;
      try {
        await work();
      } catch (error) {
        say(error.message, true);
      }
      enable();
    });

  // ---- Tables: rows by a key, changed where they are, so that the focus stays ----

  const cell = (tag, content, isNumber) => {
    const made = element(tag, isNumber ? { class: "number" } : {});
    fill(made, content);
    return made;
  };
  const fill = (place, content) => {
    if (content instanceof Node) {
      place.replaceChildren(content);
    } else if (place.textContent !== String(content)) {
      place.textContent = content;
    }
  };
  const table = (id, rows) => {
    const columns = [...byId(id).tHead.rows[0].cells].map((heading) => heading.classList.contains("number"));
    const body = byId(id).tBodies[0];
    const old = new Map([...body.rows].map((row) => [row.dataset.key, row]));
    rows.forEach(({ key, cells, named }, index) => {
      let row = old.get(String(key));
      old.delete(String(key));
      if (!row) {
        row = element("tr", { "data-key": key }, ...cells.map((content, at) => cell(at === (named ?? 0) ? "th" : "td", content, columns[at])));
        row.querySelector("th")?.setAttribute("scope", "row");
      } else {
        cells.forEach((content, at) => {
          if (!(content instanceof Node)) {
            fill(row.cells[at], content);
          } else if (row.cells[at].textContent !== content.textContent) {
            row.cells[at].replaceChildren(content);
          }
        });
      }
      if (body.rows[index] !== row) {
        body.insertBefore(row, body.rows[index] ?? null);
      }
    });
    old.forEach((row) => row.remove());
    return body;
  };
  const button = (text, click) => {
    const made = element("button", { type: "button", class: "row" }, text);
    made.addEventListener("click", click);
    return made;
  };

  // ---- VMs ----

  const showVms = () => {
    byId("vms-none").hidden = vms.length > 0;
    const body = table("vm-table", vms.map((vm) => ({
      key: vm.id,
      cells: [
        button(vm.application || "(no name)", () => choose(vm.id)),
        String(vm.pid),
        vm.vm,
        String(vm.runs),
        number(vm.threads),
        vm.heap.used == null ? "" : bytes(vm.heap.used),
        vm.heap.size == null ? "" : bytes(vm.heap.size),
        debuggerPorts(vm),
        vm.here ? (vm.waitsForDebugger ? "waits for a debugger" : "runs") : `gone: ${vm.gone}`,
      ],
    })));
    for (const row of body.rows) {
      const vm = vms.find((one) => String(one.id) === row.dataset.key);
      row.classList.toggle("chosen", vm.id === chosen);
      row.classList.toggle("gone", !vm.here);
      row.querySelector("button").setAttribute("aria-pressed", String(vm.id === chosen));
    }
    showChoice();
    if (selectedPort) {
      byId("selected-port").textContent = selectedPort;
    }
    // The port may be another program's: each VM has one of its own.
    byId("select").hidden = !selectedPort;
    enable();
    offers();
  };
  let selectedPort = null;
  const debuggerPorts = (vm) => {
    const ports = [vm.debuggerPort, vm.id === selected ? selectedPort : null].filter((port) => port != null);
    return ports.length === 0 ? "" : `port ${ports.join(", ")}${vm.debugger ? ": attached" : ""}`;
  };
  /** Which VM the other tabs are about. */
  const showChoice = () => {
    const choice = byId("vm-choice");
    byId("vm-choice-label").hidden = vms.length === 0;
    const told = vms.map((vm) => `${vm.application || "(no name)"}, process ${vm.pid}${vm.here ? "" : " (gone)"}`);
    // A list that is open stays as it is while nothing changes.
    if (told.join("\n") !== choice.dataset.told) {
      choice.dataset.told = told.join("\n");
      choice.replaceChildren(...vms.map((vm, at) => element("option", { value: vm.id }, told[at])));
    }
    choice.value = String(chosen ?? "");
  };
  byId("vm-choice").addEventListener("change", () => choose(Number(byId("vm-choice").value)));

  const enable = () => {
    const here = chosenVm()?.here ?? false;
    for (const id of ["gc", "exit", "walk-now", "walk-gc", "dump", "log-heap"]) {
      byId(id).disabled = !here;
    }
    byId("log-heap").hidden = !can("et-log");
    byId("select").disabled = chosen == null || chosen === selected || !selectedPort;
  };

  /** What the chosen VM does not offer is said. */
  const offers = () => {
    const vm = chosenVm();
    byId("monitors-says").textContent = !vm ? "Choose a VM." : can("et-events")
      ? "Each time a thread found a monitor held, and each wait(), while this page is open."
      : "This VM does not report what its threads wait for: its agent is not libet_monitor.so, or has no such events.";
    byId("allocations-says").textContent = !vm ? "Choose a VM." : can("et-allocations")
      ? "What the program allocated in the last second, while this page is open."
      : "This VM does not report what it allocates: only a traced program does (et-instrument run, or an instrumented JDK, with -Det.ddm=on).";
    byId("ask-form").hidden = !vm || !["et-objects", "et-threads", "et-histogram"].some(can);
    if (vm && byId("ask-form").hidden) {
      byId("ask-answer").textContent = "This VM does not answer such questions: its agent is not libet_monitor.so.";
    }
  };

  const choose = (id) => {
    if (chosen === id) {
      return;
    }
    chosen = id;
    threads.clear();
    histories.clear();
    heap = null;
    bitmap = null;
    monitors = { places: [], events: [], lost: 0 };
    allocated = null;
    rates.length = 0;
    byId("thread-details").replaceChildren();
    byId("ask-answer").replaceChildren();
    listen();
    showVms();
    redraw();
  };

  // ---- Events ----

  const listen = () => {
    source?.close();
    source = new EventSource(chosen == null ? "api/events" : `api/events?vm=${chosen}`);
    const on = (name, take) => source.addEventListener(name, (event) => take(JSON.parse(event.data)));
    on("vms", (list) => {
      ({ vms, selected, selectedPort } = list);
      if (chosen == null && vms.length > 0) {
        choose(selected ?? vms[0].id);
      }
      showVms();
    });
    on("threads", takeThreads);
    on("heap", takeHeap);
    on("monitors", takeMonitors);
    on("allocations", takeAllocations);
    on("bitmap", takeBitmap);
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) {
        say("et-monitor does not answer. Start it again, and open the URL that it prints.", true);
      }
    };
  };

  // ---- Threads ----

  const STATES = ["running", "sleeping", "monitor", "waiting", "native", "vmwait"];
  const stateName = (state) => (STATES.includes(state) ? state : "other");
  // DDM's name says that it waits in the VM, as whoever calls LockSupport.park does.
  const stateLabel = (state) => (state === "vmwait" ? "parked" : state);
  const SAMPLES = 120;
  /** More rows nobody reads, and the browser has to draw. */
  const MOST_ROWS = 500;
  const threads = new Map();
  const histories = new Map();

  const takeThreads = ({ all, changed, ended }) => {
    if (all) {
      threads.clear();
    }
    changed.forEach((thread) => threads.set(thread.id, thread));
    ended.forEach((id) => {
      threads.delete(id);
      histories.delete(id);
    });
    drawThreads();
  };
  const drawThreads = () => {
    const term = byId("thread-search").value.toLowerCase();
    const found = [...threads.values()].filter((thread) => thread.name.toLowerCase().includes(term)).sort((a, b) => a.id - b.id);
    const shown = found.slice(0, MOST_ROWS);
    byId("thread-count").textContent = `${number(threads.size)} threads${found.length > shown.length ? `, the first ${MOST_ROWS} of ${number(found.length)} are shown: search for the others` : ""}.`;
    const body = table("thread-table", shown.map((thread) => ({
      key: thread.id,
      named: 1,
      cells: [String(thread.id), button(thread.name || "(no name)", () => showThread(thread.id)), stateLabel(thread.state) + (thread.suspended ? ", suspended" : ""), ""],
    })));
    for (const row of body.rows) {
      row.cells[2].className = "state";
      if (!row.cells[3].firstChild) {
        row.cells[3].append(element("canvas", { width: SAMPLES * 2, height: 14, "aria-hidden": "true" }));
        paintHistory(Number(row.dataset.key), row.cells[3].firstChild);
      }
    }
  };
  const paintHistory = (id, canvas) => {
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    const history = histories.get(id) ?? [];
    history.forEach((state, at) => {
      // Nobody looked then.
      if (state == null) {
        return;
      }
      context.fillStyle = stateColours[stateName(state)];
      context.fillRect((SAMPLES - history.length + at) * 2, 0, 2, canvas.height);
    });
  };
  let stateColours = {};
  const readColours = () => {
    stateColours = Object.fromEntries([...STATES, "other"].map((state) => [state, colour(`state-${state}`)]));
    byId("thread-legend").replaceChildren(...[...STATES, "other"].map((state) => {
      const swatch = element("span", { class: "swatch" });
      swatch.style.background = stateColours[state];
      return element("li", {}, swatch, stateLabel(state));
    }));
  };
  /** A sample is so many milliseconds. Browsers call less often for a page that nobody sees: what was left out stays blank. */
  const SAMPLE_MS = 500;
  let sampledAt = 0;
  setInterval(() => {
    const now = Math.round(performance.now() / SAMPLE_MS);
    const missed = Math.min(now - sampledAt - 1, SAMPLES);
    if (missed < 0) {
      return;
    }
    sampledAt = now;
    const isTold = chosenVm()?.here && source?.readyState === EventSource.OPEN;
    threads.forEach((thread, id) => {
      const history = histories.get(id) ?? [];
      if (history.length > 0) {
        history.push(...Array(missed).fill(null));
      }
      history.push(isTold ? thread.state : null);
      history.splice(0, history.length - SAMPLES);
      histories.set(id, history);
    });
    if (byId("threads").classList.contains("shown") && !document.hidden) {
      for (const row of byId("thread-table").tBodies[0].rows) {
        const canvas = row.querySelector("canvas");
        if (canvas) {
          paintHistory(Number(row.dataset.key), canvas);
        }
      }
    }
  }, SAMPLE_MS);
  byId("thread-search").addEventListener("input", drawThreads);

  const showThread = async (id) => {
    const place = byId("thread-details");
    place.replaceChildren(element("p", {}, "…"));
    try {
      const { info, stack } = await call(`vms/${chosen}/threads/${id}`);
      const parts = [element("h3", {}, `Thread ${id}${info.name ? `: ${info.name}` : ""}`)];
      parts.push(info.error ? element("p", { class: "hint" }, info.error) : answerTable(info));
      if (stack.error) {
        parts.push(element("p", { class: "hint" }, stack.error));
      } else if (stack.frames.length === 0) {
        parts.push(element("p", { class: "hint" }, "No frames."));
      } else {
        const line = (frame) => `${frame.class}.${frame.method}${frame.file ? ` (${frame.file}${frame.line > 0 ? `:${frame.line}` : ""})` : frame.line === -2 ? " (native)" : ""}`;
        parts.push(element("ol", { class: "frames" }, ...stack.frames.map((frame) => element("li", {}, element("code", {}, line(frame))))));
      }
      place.replaceChildren(...parts);
    } catch (error) {
      place.replaceChildren(element("p", { class: "hint" }, error.message));
    }
  };

  // ---- The heap over time ----

  let heap = null;
  const charts = new Map();
  /** A value without neighbours has no line: it is a dot. */
  const alone = (plot, series) => {
    const values = plot.data[series];
    const found = [...values.keys()].filter((at) => values[at] != null && values[at - 1] == null && values[at + 1] == null);
    return found.length > 0 ? found : null;
  };
  const chart = (id, label, series, values) => {
    const place = byId(id);
    let made = charts.get(id);
    if (made && made.root.isConnected) {
      made.setData(values);
    } else if (place.clientWidth > 0) {
      const grid = { stroke: colour("grid"), width: 1 };
      const axis = (more) => ({ stroke: colour("muted"), grid, ticks: grid, font: "12px system-ui, sans-serif", ...more });
      made = new uPlot({
        width: Math.max(place.clientWidth, 300), height: 240,
        scales: { y: { range: (_, low, high) => [0, high * 1.02 || 1] } },
        axes: [axis({}), axis({ size: 84, incrs: byteSteps, values: (_, ticks) => ticks.map(bytes) })],
        series: [{ value: (_, value) => (value == null ? "" : new Date(value * 1000).toLocaleTimeString()) }, ...series],
      }, values, place);
      made.over.setAttribute("role", "img");
      charts.set(id, made);
    }
    made?.over.setAttribute("aria-label", label);
  };
  const line = (label, name, fill) => ({ label, stroke: colour(name), fill: fill ? colour(fill) : undefined, width: 1.5, points: { show: false, filter: alone, size: 5 }, value: (_, value) => (value == null ? "" : bytes(value)) });

  const takeHeap = (news) => {
    const history = news.history ?? heap?.history ?? [];
    if (!news.history && news.timeMs != null && (history.at(-1)?.[0] ?? 0) < news.timeMs) {
      history.push([news.timeMs, news.used, news.size, news.joined]);
      if (history.length > 4000) {
        history.splice(0, 1000);
      }
    }
    heap = { ...news, history };
    drawHeap();
  };
  /** Rows of time, values, and whether the row before is joined to it, as columns; between rows that are not there is nothing. */
  const withGaps = (rows, width) => {
    const columns = Array.from({ length: width }, () => []);
    rows.forEach((row, at) => {
      if (at > 0 && !row[width]) {
        columns.forEach((column, which) => column.push(which === 0 ? (rows[at - 1][0] + row[0]) / 2000 : null));
      }
      columns.forEach((column, which) => column.push(which === 0 ? row[0] / 1000 : row[which]));
    });
    return columns;
  };
  const fact = (name, value, more) =>
    element("div", { class: "fact" }, element("div", { class: "name" }, name), element("div", { class: "value" }, value), element("div", { class: "more" }, more ?? ""));
  const drawHeap = () => {
    if (!byId("heap").classList.contains("shown")) {
      return;
    }
    if (!heap || heap.timeMs == null) {
      byId("heap-facts").replaceChildren();
      byId("heap-hint").textContent = "No heap data yet.";
      charts.get("chart-heap")?.setData([[], [], []]);
      table("heap-parts", []);
      return;
    }
    byId("heap-facts").replaceChildren(
      fact("In use", bytes(heap.used), heap.objects == null ? "" : `${number(heap.objects)} objects`),
      fact("Committed", bytes(heap.size), heap.most ? `at most ${bytes(heap.most)}` : ""),
      ...(heap.collections == null ? [] : [fact("Collections", number(heap.collections), `${nanos(heap.pausesNs)} of pauses`)]),
    );
    byId("heap-hint").textContent = `Lines: while this page was open. Dots: sizes that only a collection reported.${heap.clamped ? " This VM reports sizes in 32 bits: larger ones are cut to 4 GiB." : ""}`;
    chart("chart-heap", `In use: ${bytes(heap.used)} of ${bytes(heap.size)}; ${heap.history.length} points`,
      [line("in use", "live", "live-fill"), line("committed", "born")], withGaps(heap.history, 3));
    byId("heap-parts").closest(".scroll").hidden = heap.parts.length === 0;
    table("heap-parts", heap.parts.map((part) => ({ key: part.name, cells: [part.name, bytes(part.used), bytes(part.size), part.most ? bytes(part.most) : ""] })));
  };

  // ---- The heap as a map ----

  /** Cells in a line: a small heap is no thin line. */
  let columns = 256;
  let bitmap = null;
  let cursor = 0;
  const decode = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const takeBitmap = async ({ native }) => {
    if (native !== byId("walk-native").checked) {
      return;
    }
    const of = chosen;
    try {
      const found = await call(`vms/${of}/bitmap?native=${native}`);
      if (of === chosen && found) {
        bitmap = { ...found, cells: decode(found.cells), fill: decode(found.fill) };
        drawMap();
      }
    } catch (error) {
      say(error.message, true);
    }
  };
  /** The shades of what hard references hold have the names of kinds. */
  const KINDS = { object: 1, class: 2, array1: 3, array2: 4, array4: 5, array8: 6, native: 7 };
  const rgb = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
  const drawMap = () => {
    const canvas = byId("map-canvas");
    if (!bitmap) {
      byId("map-says").textContent = "The heap has not been walked yet.";
      canvas.width = canvas.height = 1;
      table("map-totals", []);
      table("map-gaps", []);
      return;
    }
    const shades = bitmap.shades.map((_, at) => rgb(colour(`shade-${at}`)));
    columns = Math.min(256, Math.max(16, Math.ceil(Math.sqrt(bitmap.cells.length * 2))));
    const rows = Math.max(1, Math.ceil(bitmap.cells.length / columns));
    canvas.width = columns;
    canvas.height = rows;
    const context = canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    bitmap.cells.forEach((shade, at) => {
      // What fills a part of its cell only lets the background through.
      const share = bitmap.fill[at] === 0 ? 0 : 0.25 + (0.75 * bitmap.fill[at]) / 255;
      for (let part = 0; part < 3; part++) {
        image.data[at * 4 + part] = shades[0][part] + (shades[shade][part] - shades[0][part]) * share;
      }
      image.data[at * 4 + 3] = 255;
    });
    context.putImageData(image, 0, 0);
    canvas.style.aspectRatio = `${columns} / ${rows}`;
    const percent = (part) => (bitmap.bytes > 0 ? `${((part * 100) / bitmap.bytes).toFixed(1)} %` : "");
    const says = `${bytes(bitmap.used)} of ${bytes(bitmap.bytes)} in use${bitmap.objects == null ? "" : ` by ${number(bitmap.objects)} objects`}; largest gap ${bytes(bitmap.largestFree)}, fragmentation ${(bitmap.fragmentation * 100).toFixed(1)} %; a cell is ${bytes(bitmap.cellBytes)}.`;
    byId("map-says").textContent = `${new Date(bitmap.timeMs).toLocaleTimeString()}: ${says}`;
    canvas.setAttribute("aria-label", `Map of the heap: ${says}`);
    table("map-totals", bitmap.totals.map((total) => {
      const swatch = element("span", { class: "swatch" });
      swatch.style.background = colour(`shade-${total.shade}`);
      const isFree = total.solidity === "free";
      return {
        key: `${total.solidity} ${total.kind}`, named: 1,
        cells: [swatch, isFree ? "free" : bitmap.shades[KINDS[total.kind]], isFree ? "" : total.solidity, bytes(total.bytes), percent(total.bytes)],
      };
    }));
    table("map-gaps", bitmap.gaps.map((gap) => ({ key: gap.atLeast, cells: [bytes(gap.atLeast), number(gap.runs), bytes(gap.bytes)] })));
  };
  const sayCell = () => {
    if (!bitmap || bitmap.cells.length === 0) {
      return;
    }
    cursor = Math.max(0, Math.min(cursor, bitmap.cells.length - 1));
    const used = ((bitmap.fill[cursor] * 100) / 255).toFixed(0);
    byId("map-cell").textContent = `Cell ${number(cursor + 1)} of ${number(bitmap.cells.length)}, ${bytes(cursor * bitmap.cellBytes)} from the start: ${bitmap.fill[cursor] === 0 ? "free" : `${used} % used, mostly ${bitmap.shades[bitmap.cells[cursor]]}`}.`;
  };
  byId("map-canvas").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns, PageDown: 16 * columns, PageUp: -16 * columns, Home: -1e9, End: 1e9 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      cursor += step;
      sayCell();
    }
  });
  byId("map-canvas").addEventListener("mousemove", (event) => {
    const { width, height } = byId("map-canvas").getBoundingClientRect();
    const rows = byId("map-canvas").height;
    cursor = Math.floor((event.offsetY / height) * rows) * columns + Math.floor((event.offsetX / width) * columns);
    sayCell();
  });
  const walk = async (collect) => {
    byId("map-says").textContent = "The VM is walking its heap …";
    await call(`vms/${chosen}/walk`, { native: byId("walk-native").checked, objects: byId("walk-objects").checked, collect });
  };
  onClick("walk-now", () => walk(false).catch((error) => { drawMap(); throw error; }));
  onClick("walk-gc", () => walk(true).catch((error) => { drawMap(); throw error; }));
  byId("walk-native").addEventListener("change", () => {
    bitmap = null;
    drawMap();
    if (chosen != null) {
      takeBitmap({ native: byId("walk-native").checked });
    }
  });

  // ---- Monitors ----

  let monitors = { places: [], events: [], lost: 0 };
  const takeMonitors = (news) => {
    monitors.lost = news.lost;
    if (news.places) {
      monitors = news;
    } else {
      news.events.forEach(addToPlace);
      monitors.events = [...monitors.events, ...news.events].slice(-500);
    }
    drawMonitors();
  };
  const addToPlace = (event) => {
    if (event.what !== "contended-entered" && event.what !== "waited") {
      return;
    }
    const place = event.place ?? "";
    let row = monitors.places.find((one) => one.class === event.class && one.place === place);
    if (!row) {
      row = { class: event.class, place, longestOwner: null, longestForNs: 0, contended: 0, contendedNs: 0, longestNs: 0, waits: 0, waitsNs: 0 };
      monitors.places.push(row);
    }
    if (event.what === "waited") {
      row.waits += 1;
      row.waitsNs += event.waitedNs;
    } else {
      row.contended += 1;
      row.contendedNs += event.waitedNs;
      row.longestNs = Math.max(row.longestNs, event.waitedNs);
      if (event.owner.name && event.waitedNs >= row.longestForNs) {
        row.longestForNs = event.waitedNs;
        row.longestOwner = event.owner.name;
      }
    }
  };
  const who = (thread) => (!thread ? "" : thread.id === 0 ? "not known" : thread.name ?? `thread ${thread.id}`);
  const WHAT = { "contended-enter": "waits to enter", "contended-entered": "entered", wait: "waits", waited: "resumes", "gc-start": "collection begins", "gc-finish": "collection ends" };
  const drawMonitors = () => {
    if (!byId("monitors").classList.contains("shown")) {
      return;
    }
    const rows = [...monitors.places].sort((a, b) => b.contendedNs - a.contendedNs || b.waitsNs - a.waitsNs).slice(0, 200);
    table("monitor-places", rows.map((row) => ({
      key: `${row.class}\n${row.place}`,
      cells: [
        row.class, row.place, number(row.contended), nanos(row.contendedNs), nanos(row.longestNs),
        row.contended > 0 ? row.longestOwner ?? "not known" : "", number(row.waits), nanos(row.waitsNs),
      ],
    })));
    const events = monitors.events.slice(-100).reverse();
    table("monitor-events", events.map((event, at) => ({
      key: `${event.timeMs} ${at}`,
      cells: [
        new Date(event.timeMs).toISOString().slice(11, 23), who(event.thread), WHAT[event.what] + (event.timedOut ? ", time was up" : ""),
        event.place ?? "", event.class ?? "", event.monitor ?? "", who(event.owner),
        event.waitedNs != null ? nanos(event.waitedNs) : event.pauseNs != null ? nanos(event.pauseNs) : event.timeoutMs > 0 ? `at most ${event.timeoutMs} ms` : "",
      ],
    })));
    if (monitors.lost > 0) {
      byId("monitors-says").textContent = `${number(monitors.lost)} events came too fast and were dropped.`;
    }
  };

  // ---- Allocations ----

  let allocated = null;
  const rates = [];
  const takeAllocations = (news) => {
    allocated = news;
    // What was allocated before the report's interval, since the report before, nobody has asked.
    const isJoined = rates.length > 0 && news.timeMs - news.intervalMs <= rates.at(-1)[0] + 500;
    rates.push([news.timeMs, (news.bytes * 1000) / Math.max(news.intervalMs, 1), isJoined]);
    rates.splice(0, rates.length - 600);
    drawAllocations();
  };
  const drawAllocations = () => {
    if (!byId("allocations").classList.contains("shown")) {
      return;
    }
    const by = checked("allocated-by");
    const sums = new Map();
    for (const site of allocated?.sites ?? []) {
      const where = by === "site" ? site.site : by === "context" ? [site.site, ...site.context.split(";")].filter(Boolean).join(" ← ") : "";
      const key = `${site.class}\n${where}`;
      const sum = sums.get(key) ?? { class: site.class, where, objects: 0, bytes: 0 };
      sum.objects += site.objects;
      sum.bytes += site.bytes;
      sums.set(key, sum);
    }
    const per = 1000 / Math.max(allocated?.intervalMs ?? 1000, 1);
    const rows = [...sums].sort((a, b) => b[1].bytes - a[1].bytes);
    table("allocation-rows", rows.map(([key, sum]) => ({ key, cells: [sum.class, sum.where, number(sum.objects * per), bytes(sum.bytes * per)] })));
    chart("chart-allocations", `${bytes(rates.at(-1)?.[1] ?? 0)} per second`, [line("per second", "born")], withGaps(rates, 2));
  };
  onChange("allocated-by", drawAllocations);

  // ---- Questions ----

  /** An answer as a table; ids that lead somewhere are buttons. */
  const answerTable = (value) => {
    const LINKS = { class: "class", superclass: "class", object: "object", waitsFor: "monitor" };
    const rows = Object.entries(value).filter(([, one]) => one != null && one !== "" && !(Array.isArray(one) && typeof one[0] === "object"));
    return element("div", { class: "scroll" }, element("table", {}, element("tbody", {}, ...rows.map(([name, one]) => {
      const content = LINKS[name] && one !== "0" ? button(String(one), () => ask(LINKS[name], one)) : Array.isArray(one) ? one.join(", ") || "none" : String(one);
      return element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, content));
    }))));
  };
  const listTable = (heads, rows) => element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Answer" }, element("table", {},
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map((one) => element("td", {}, one)))))));
  const ask = async (what, id) => {
    byId("ask-what").value = what;
    byId("ask-id").value = what === "histogram" ? "" : id;
    const place = byId("ask-answer");
    page.show("ask", false);
    try {
      const paths = { histogram: "histogram?most=100", instances: `classes/${id}/instances?most=100`, object: `objects/${id}`, class: `classes/${id}`, monitor: `monitors/${id}`, thread: `threads/${id}` };
      const answer = await call(`vms/${chosen}/${paths[what]}`);
      if (what === "histogram") {
        place.replaceChildren(
          element("p", {}, `${number(answer.objects)} objects, ${bytes(answer.bytes)}; the ${answer.rows.length} classes with the most bytes.`),
          listTable(["Class", "Objects", "Bytes"], answer.rows.map((row) => [row.class === "0" ? row.name : button(row.name, () => ask("instances", row.class)), number(row.objects), bytes(row.bytes)])),
        );
      } else if (what === "instances") {
        place.replaceChildren(
          element("p", {}, `${number(answer.total)} objects; ${answer.objects.length} of them:`),
          listTable(["Object", "Size"], answer.objects.map((one) => [button(one.id, () => ask("object", one.id)), bytes(one.size)])),
        );
      } else if (what === "thread") {
        place.replaceChildren(answer.info.error ? element("p", {}, answer.info.error) : answerTable(answer.info));
      } else {
        place.replaceChildren(answerTable(answer));
      }
    } catch (error) {
      place.replaceChildren(element("p", { class: "alarm" }, error.message));
    }
  };
  byId("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const [what, id] = [byId("ask-what").value, byId("ask-id").value.trim()];
    if (what !== "histogram" && !/^\d+$/.test(id)) {
      byId("ask-answer").textContent = "An id is a number.";
      return;
    }
    ask(what, id);
  });

  // ---- What can be done ----

  onClick("gc", async () => {
    await call(`vms/${chosen}/gc`, {});
    say("The VM has collected its garbage.");
  });
  onClick("select", async () => {
    ({ vms, selected, selectedPort } = await call(`vms/${chosen}/select`, {}));
    showVms();
    say(`Debuggers find this VM at port ${selectedPort}.`);
  });
  onClick("dump", async () => {
    say("The VM is writing its heap …");
    const path = byId("dump-path").value.trim();
    const dump = await call(`vms/${chosen}/dump`, path === "" ? {} : { path });
    say(`${dump.path}${dump.bytes == null ? "" : `, ${bytes(dump.bytes)}`}`);
  });
  onClick("log-heap", async () => {
    say("The VM is writing its heap into the log …");
    const dump = await call(`vms/${chosen}/log-heap`, {});
    say(`Dump ${dump.dump} in ${dump.file}: ${number(dump.objects)} objects, ${number(dump.references)} references; the program was stopped for ${nanos(dump.pauseUs * 1000)}.`);
  });
  // The end of a program takes two clicks.
  let armed = null;
  onClick("exit", async () => {
    const exit = byId("exit");
    if (armed === chosen) {
      armed = null;
      exit.classList.remove("armed");
      exit.textContent = "Exit";
      await call(`vms/${chosen}/exit`, { status: Number(byId("exit-status").value) });
      say("The VM was told to exit.");
      return;
    }
    armed = chosen;
    exit.classList.add("armed");
    exit.textContent = "Exit: click again";
    setTimeout(() => {
      armed = null;
      exit.classList.remove("armed");
      exit.textContent = "Exit";
    }, 5000);
  });

  // ---- Pages ----

  const redraw = () => {
    drawThreads();
    drawHeap();
    drawMap();
    drawMonitors();
    drawAllocations();
  };
  const dropCharts = () => {
    charts.forEach((made) => made.destroy());
    charts.clear();
  };
  // A page is drawn when it is first seen, and again when colours or width change.
  const drawAnew = (draw) => () => {
    readColours();
    dropCharts();
    draw();
  };
  Object.assign(drawers, {
    vms: () => {}, threads: drawAnew(drawThreads), heap: drawAnew(drawHeap), map: drawAnew(drawMap), monitors: drawAnew(drawMonitors), allocations: drawAnew(drawAllocations), ask: () => {},
  });
  readColours();
  page.all('[role="tab"]').forEach((tab) => tab.addEventListener("click", () => setTimeout(redraw)));
  window.addEventListener("hashchange", () => setTimeout(redraw));
  page.show(location.hash.slice(1) || "vms", false);
  listen();
  enable();
})();
