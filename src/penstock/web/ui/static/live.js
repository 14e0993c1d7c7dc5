// Keeps a visible page current, times relative, and the keyboard useful. Without it every page and form works all the same.
(() => {
  "use strict";
  const POLL_SECONDS = 5, RETRY_SECONDS = 3;
  const page = () => document.getElementById("page");
  const prefix = () => document.documentElement.dataset.prefix || "";
  let stream = null, timer = null, paused = new URLSearchParams(location.search).has("paused"), busy = false, seen = "";

  // -- times -----------------------------------------------------------------------------------------------
  const spans = [[172800, 86400, "days"], [7200, 3600, "h"], [120, 60, "min"], [0, 1, "s"]];
  const offset = () => Number(page()?.dataset.offset || 0);
  const span = (seconds) => { const [, size, unit] = spans.find(([least]) => seconds >= least); return `${Math.floor(seconds / size)} ${unit}`; };
  const relative = (at, now) => {
    const away = (at - now) / 1000;
    return Math.abs(away) < 1 ? "now" : away > 0 ? `in ${span(away)}` : `${span(-away)} ago`;
  };
  function times() {
    const now = Date.now() + offset();
    for (const each of document.querySelectorAll("time[datetime]")) {
      const at = Date.parse(each.dateTime), text = relative(at, now);
      if (each.textContent !== text) each.textContent = text;
      if (!each.dataset.local) {
        each.dataset.local = "1";
        each.title = `${each.title} · ${new Date(at).toLocaleString()} here`;
      }
    }
  }
  function clock() {
    // The server's clock, which may be virtual, goes on from the moment the page was made.
    const made = Number(page()?.dataset.now || 0);
    if (page() && made && !page().dataset.offset) page().dataset.offset = String(made - Date.now());
  }

  // -- live ------------------------------------------------------------------------------------------------
  function show(state) {
    const button = document.getElementById("live");
    if (!button) return;
    button.dataset.state = state;
    button.firstElementChild.textContent = { on: "Live", lost: "Reconnecting", paused: "Paused", off: "Not live" }[state];
    document.body.classList.toggle("stale", state === "lost");
  }
  const every = () => Number(page()?.dataset.every || 0);
  function stop() { if (stream) stream.close(); stream = null; clearTimeout(timer); timer = null; }
  function start() {
    stop();
    if (!every()) return show("off");
    if (paused) return show("paused");
    if (document.hidden) return;
    const watched = location.pathname.slice(prefix().length) + location.search;
    stream = new EventSource(`${prefix()}/live?page=${encodeURIComponent(watched)}`);
    stream.onopen = () => show("on");
    stream.addEventListener("changed", (event) => { if (event.data !== seen) { seen = event.data; refresh(); } });
    stream.addEventListener("over", () => { stop(); timer = setTimeout(start, RETRY_SECONDS * 1000); show("lost"); });
    stream.onerror = () => {
      show("lost");
      if (stream && stream.readyState === EventSource.CLOSED) { stop(); timer = setTimeout(poll, POLL_SECONDS * 1000); }
    };
  }
  async function poll() {
    timer = null;
    if (paused || document.hidden || !every()) return;
    await refresh();
    timer = setTimeout(poll, POLL_SECONDS * 1000);
  }
  const typing = () => { const at = document.activeElement; return at && page().contains(at) && /^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) && at.type !== "checkbox"; };
  async function refresh() {
    if (busy || typing() || document.querySelector("dialog[open]")) return;
    busy = true;
    try {
      const there = new URL(location.href);
      there.searchParams.set("part", "1");
      const answer = await fetch(there, { headers: { Accept: "text/html" }, credentials: "same-origin" });
      if (answer.status === 401) { if ([...page().querySelectorAll("input, textarea, select")].some(changed)) ended(); else location.reload(); return; }
      if (!answer.ok) throw new Error(answer.status);
      morph(await answer.text());
      show("on");
    } catch { show("lost"); } finally { busy = false; }
  }
  // The session has ended: what was typed stays, and the form can be sent again after a login in another tab.
  function ended() {
    if (document.getElementById("ended")) return;
    const note = document.createElement("p"), link = document.createElement("a");
    Object.assign(note, { id: "ended", className: "notice bad" }).setAttribute("role", "alert");
    Object.assign(link, { href: `${prefix()}/login`, target: "_blank", textContent: "Log in in another tab" });
    link.setAttribute("hx-boost", "false");
    note.append("The session has ended. ", link, ", then send the form again: what you typed is kept.");
    document.getElementById("main").prepend(note);
    note.scrollIntoView();
  }
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, requestConfig } = event.detail;
    if (xhr.status === 401 && requestConfig.verb === "post" && document.getElementById("main")) { event.detail.shouldSwap = false; ended(); }
  });
  // A field that was typed into, ticked or chosen stays as it is.
  function changed(field) {
    if (field.tagName === "TEXTAREA") return field.value !== field.defaultValue;
    if (field.tagName === "SELECT") return field.selectedIndex > 0 && !field.options[field.selectedIndex].defaultSelected;
    if (field.tagName !== "INPUT" || field.type === "hidden") return false;
    return field.type === "checkbox" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
  }
  function morph(text) {
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("page");
    if (!fresh) return;
    Idiomorph.morph(page(), fresh, {
      morphStyle: "outerHTML",
      callbacks: {
        beforeNodeMorphed: (old, made) => {
          if (old.nodeType !== 1) return true;
          if (old.tagName === "DETAILS" && old.open) made.setAttribute("open", "");
          if (changed(old)) return false;
          if (old.classList.contains("chart")) { draw(old, made.dataset.chart); return false; }
          return true;
        },
      },
    });
    settle();
  }

  // -- charts ----------------------------------------------------------------------------------------------
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  function draw(box, text) {
    if (!text || !window.uPlot) return;
    const given = JSON.parse(text);
    if (box.plot && box.dataset.drawn === text) return;
    box.dataset.drawn = text;
    if (box.plot) { box.plot.setData(given.data); return; }
    const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px sans-serif" };
    const line = (each) => ({ label: each.label, stroke: colour(each.colour), width: 1.5, dash: each.dash, fill: each.fill ? `color-mix(in srgb, ${colour(each.colour)} 12%, transparent)` : undefined, points: { show: false } });
    box.textContent = "";
    box.plot = new uPlot({
      width: box.clientWidth, height: box.clientHeight || 180, legend: { show: false }, cursor: { y: false, points: { size: 6 } },
      scales: { y: { range: (u, low, high) => [0, Math.max(1, high * 1.1)] } },
      axes: [{ ...axis, size: 28, space: 70, values: (u, at) => at.map((each) => new Date(each * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false })) }, { ...axis, size: 44 }], series: [{}, ...given.series.map(line)],
    }, given.data, box);
  }
  function charts() {
    for (const box of document.querySelectorAll(".chart[data-chart]")) if (!box.plot) draw(box, box.dataset.chart);
  }
  new ResizeObserver(() => {
    for (const box of document.querySelectorAll(".chart")) if (box.plot && box.plot.width !== box.clientWidth) box.plot.setSize({ width: box.clientWidth, height: box.clientHeight });
  }).observe(document.body);

  // -- small helps -----------------------------------------------------------------------------------------
  async function copy(button) {
    const text = button.dataset.copy;
    try { await navigator.clipboard.writeText(text); } catch {
      const field = document.createElement("textarea");
      field.value = text;
      field.className = "visually-hidden";
      document.body.append(field);
      field.select();
      document.execCommand("copy");
      field.remove();
    }
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1200);
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-copy]");
    if (button) { event.preventDefault(); copy(button); }
    if (event.target.closest("#live")) pause();
    if (event.target.closest("#keys-close")) document.getElementById("keys").close();
  });
  document.addEventListener("change", (event) => {
    if (event.target.id === "all") for (const each of document.querySelectorAll("input[name=id]")) each.checked = event.target.checked;
    if (event.target.matches("select[data-submit], input[data-submit]")) event.target.form.requestSubmit();
  });
  document.addEventListener("input", (event) => {
    // Time travel: the slider names the moment before it is let go.
    const shown = event.target.dataset && event.target.dataset.shows && document.getElementById(event.target.dataset.shows);
    if (shown) shown.textContent = new Date(Number(event.target.value) / 1000).toLocaleString();
  });
  function pause() {
    paused = !paused;
    const there = new URL(location.href);
    if (paused) there.searchParams.set("paused", "1"); else there.searchParams.delete("paused");
    history.replaceState(history.state, "", there);
    if (paused) { stop(); show("paused"); } else { start(); refresh(); }
  }
  const places = { o: "/", q: "/queues", d: "/dead", c: "/cron", w: "/runs", p: "/pace", a: "/activity", $: "/cost" };
  let going = false, row = -1;
  function move(by) {
    const rows = [...document.querySelectorAll("main tbody tr")].filter((each) => each.querySelector("a"));
    if (!rows.length) return;
    row = Math.min(rows.length - 1, Math.max(0, row + by));
    rows.forEach((each, index) => each.setAttribute("aria-selected", String(index === row)));
    rows[row].scrollIntoView({ block: "nearest" });
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (document.documentElement.dataset.keys === "off") return;
    const chosen = document.querySelector('tr[aria-selected="true"]');
    if (going && places[event.key]) { location.href = prefix() + places[event.key]; going = false; return; }
    going = event.key === "g";
    if (going) setTimeout(() => { going = false; }, 1000);
    else if (event.key === "/") { event.preventDefault(); document.getElementById("q")?.focus(); }
    else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key === "x") chosen?.querySelector("input[type=checkbox]")?.click();
    else if (event.key === "Enter" && chosen && event.target === document.body) chosen.querySelector("a").click();
    else if (event.key === "r") pause();
    else if (event.key === "?") document.getElementById("keys")?.showModal();
  });
  function settle() { clock(); times(); charts(); }
  function arrive() { row = -1; settle(); start(); }
  document.addEventListener("visibilitychange", () => (document.hidden ? stop() : start()));
  document.addEventListener("htmx:afterSettle", arrive);
  window.addEventListener("pagehide", stop);
  window.addEventListener("pageshow", (event) => { if (event.persisted) start(); });
  setInterval(times, 1000);
  arrive();
})();
