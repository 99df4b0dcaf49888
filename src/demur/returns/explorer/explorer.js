// The interactive error-return plot. Everything is reckoned here from the document that views/explorer.py makes: exact
// counts at each system's cutoffs, its cost path, and where one system is shown better than another.
import { count, listed, number, percent, tabledPercent, thresholdText, unbroken } from "./explorer_numbers.js";
import { extremes, leading, placeAtShare, placeOf, prepared, rateOf, reading, stretchAt } from "./explorer_reading.js";

const cutoffWords = (threshold) => (threshold === null ? "return nothing" : thresholdText(threshold));
const clamped = (value, low, high) => Math.min(high, Math.max(low, value));

// Systems up to which each has its part in the sentence, and its label in the plot.
const MOST_NAMED = 4;

function words(facts, state, points) {
  if (state.align === "cost") return costWords(facts, state, points);
  if (state.x === null) return "Nothing is returned.";
  if (state.align === "advised") return advisedWords(state, points);
  if (state.align === "threshold") return `At a threshold of ${cutoffWords(state.x)}, ${errorWords(state, points, [])}.`;
  const tied = points.filter((point) => point.tied);
  const lead = `Withholding ${percent(state.x)} of the inputs, ${errorWords(state, points, tied)}.`;
  return `${lead}${reachedWords(tied)}${lateWords(facts, state)}${shownBetter(facts, state, points, tied)}`;
}

// A system that would return nothing is one for which no threshold is recommended.
function advisedWords(state, points) {
  const none = points.filter((point) => point.threshold === null).map((point) => point.name);
  const named = none.length <= MOST_NAMED ? listed(none) : `${none[0]} and ${none.length - 1} more`;
  const rest = none.length ? ` No threshold is recommended for ${named}.` : "";
  return `At the recommended thresholds, ${errorWords(state, points.filter((point) => point.threshold !== null), [])}.${rest}`;
}

function errorWords(state, points, tied) {
  const inputs = tied.length ? "" : ` of ${count(points[0].returned + points[0].withheld)}`;
  const rate = (one) => percent(rateOf(one, tied));
  const errors = (one, of = "") => (tied.length ? rate(one) : `${count(one.wrong)}${of} (${rate(one)})`);
  if (points.length > MOST_NAMED) {
    const [best, worst] = extremes(points, tied);
    const shares = state.align === "advised" ? shareWords(points) : "";
    if (rate(best) === rate(worst)) {
      const same = !tied.length && points.every((one) => one.wrong === best.wrong);
      return `every system answers ${same ? `${count(best.wrong)}${inputs} wrongly (${rate(best)})` : `${rate(best)} wrongly`}${shares}`;
    }
    return `${best.name} has the fewest errors, ${errors(best, inputs)}, and ${worst.name} the most, ${errors(worst)}${shares}`;
  }
  const told = points.map((one, place) => {
    const kept = state.align === "share" ? "" : ` withholds ${percent(one.nonreturn)} and`;
    if (place && state.align === "share") return `${one.name} ${errors(one)}`;
    if (tied.length) return `${one.name} answers ${rate(one)} wrongly`;
    return `${one.name}${kept} answers ${count(one.wrong)}${place ? "" : inputs} wrongly (${rate(one)})`;
  });
  return listed(told);
}

// Which of many systems withhold the least and the most, where each is at a share of its own.
function shareWords(points) {
  const sorted = [...points].sort((one, two) => one.nonreturn - two.nonreturn);
  const [least, most] = [sorted[0], sorted.at(-1)];
  if (percent(least.nonreturn) === percent(most.nonreturn)) return `; each withholds ${percent(least.nonreturn)}`;
  return `; ${least.name} withholds the least, ${percent(least.nonreturn)}, and ${most.name} the most, ${percent(most.nonreturn)}`;
}

function reachedWords(tied) {
  if (!tied.length) return "";
  const told = tied.map((one) => `${one.name} ${percent(one.nonreturn)} (${percent(one.error)} wrong)`);
  const named = told.length <= MOST_NAMED ? listed(told) : `${told[0]} and ${told.length - 1} more`;
  return ` Ties leave no threshold there: these rates return tied answers at random, and the next threshold withholds less: ${named}.`;
}

function lateWords(facts, state) {
  const late = facts.systems.filter((system) => system.nonreturn[0] > state.x + 1e-9);
  const told = late.map((system) => `${system.name} ${percent(system.nonreturn[0])}`);
  return late.length ? ` More is withheld by the system itself: ${listed(told)}.` : "";
}

function shownBetter(facts, state, points, tied) {
  const [first, last] = extremes(points, tied);
  const best = first.name;
  if (points.length > 2 && percent(rateOf(first, tied)) === percent(rateOf(last, tied))) return "";
  if (!facts.pairs.some((pair) => pair.a === best || pair.b === best)) return "";
  const leads = (pair) => pair.intervals.some(
    (part) => pair[part.better] === best && part.from <= state.x && state.x <= part.to);
  const worse = facts.pairs.filter(leads).map((pair) => (pair.a === best ? pair.b : pair.a));
  const others = points.length - 1;
  if (!worse.length) return others === 1 ? " No significant difference here." : ` ${best} is not significantly better here.`;
  const named = worse.length <= MOST_NAMED ? listed(worse) : `${worse.length} of the ${others} others`;
  return ` ${best} makes significantly fewer errors here${worse.length === others ? "" : ` than ${named}`}.`;
}

function costWords(facts, state, points) {
  const [cheapest, ...others] = [...points].sort((one, two) => one.cost - two.cost);
  const own = facts.systems.find((system) => system.name === cheapest.name);
  const { from, to } = stretchAt(own, state.ratio);
  const rest = (others.length < MOST_NAMED ? others : others.slice(0, 1)).map((one) => `${one.name} ${number(one.cost)}`);
  const lead = `When a non-return costs ${number(state.ratio)} of an error, `;
  const choice = cheapest.threshold === null ? "returning nothing" : `a threshold of ${cutoffWords(cheapest.threshold)}`;
  const first = others.length
    ? `${lead}${cheapest.name} with ${choice} is cheapest in this sample: ${number(cheapest.cost)} for an input, ${listed(rest)}.`
    : `${lead}${choice} is cheapest in this sample: ${number(cheapest.cost)} for an input.`;
  return `${first} This is the best choice for ${cheapest.name} at ratios from ${number(from)} to ${number(to)}.`;
}

function regionWords(points) {
  return points.filter((one) => one.region).map(({ name, region }) => {
    const above = region.high === null ? "" : ` and below ${cutoffWords(region.high)}`;
    if (!region.answers) return `${name}: no answers.`;
    const bounds = `confidence of at least ${cutoffWords(region.low)}${above}`;
    return `${name}: ${count(region.answers)} answers with a ${bounds}, ${count(region.wrong)} of them wrong.`;
  }).join(" ");
}

// Labels of the points, moved apart where curves lie close; on the right where there is room and no other point.
function handleRows(facts, state, points, scales) {
  const top = scales.y.domain()[1];
  const tied = state.align === "share" ? points.filter((point) => point.tied) : [];
  const named = points.length <= MOST_NAMED && state.align !== "advised";
  const rows = facts.systems.map((system, place) => {
    const same = state.align === "share";
    const nonreturn = same ? Math.max(points[place].nonreturn, state.x) : points[place].nonreturn;
    const error = points[place].error_at_share;
    const [across, at] = [scales.x(nonreturn), scales.y(error)];
    return { nonreturn, error, top: error, colour: system.style.colour, label: named ? percent(rateOf(points[place], tied)) : "", across, at, own: at };
  });
  const bottom = scales.y(0) - 8;
  const sorted = [...rows].sort((one, two) => two.at - one.at);
  sorted.forEach((row, place) => { row.at = Math.min(row.at, place ? sorted[place - 1].at - 15 : bottom); });
  for (const row of rows) {
    row.label_at = scales.y.invert(Math.max(row.at, 8));
    const gap = (other) => other.across - row.across;
    const taken = rows.some((other) => gap(other) > 4 && gap(other) < 62 && Math.abs(other.own - row.at) < 14);
    row.side = row.nonreturn > 0.82 || (taken && row.nonreturn > 0.1) ? "right" : "left";
  }
  const rule = { nonreturn: state.x, top, colour: "#333333" };
  return state.align === "share" ? [rule, ...rows] : rows;
}

function cellTexts(point) {
  const counts = [point.returned, point.right, point.wrong, point.withheld, point.missed].map(count);
  return [tabledPercent(point.error_at_share), cutoffWords(point.threshold), tabledPercent(point.nonreturn), tabledPercent(point.error), ...counts, number(point.cost)];
}

// The wanted state made sound: whatever it lacks, or has wrong, is as at the start.
function soundState(facts, wanted) {
  const rate = (value, most) => (typeof value === "number" && value >= 0 && value <= most ? value : null);
  const align = ["share", "threshold", "cost", ...(facts.advised ? ["advised"] : [])].includes(wanted.align) ? wanted.align : facts.advised ? "advised" : "share";
  const marked = Array.isArray(wanted.region) && wanted.region.every((end) => rate(end, 1) !== null) && wanted.region[0] < wanted.region[1];
  const known = align === "threshold" ? (wanted.x === null || Number.isFinite(wanted.x)) : rate(wanted.x, 1) !== null;
  return {
    align,
    x: known ? (align === "threshold" ? wanted.x : Math.max(wanted.x, facts.floor)) : align === "threshold" ? facts.systems[0].threshold[placeAtShare(facts.systems[0], facts.at)] : facts.at,
    ratio: rate(wanted.ratio, 0.99) ?? facts.ratio,
    region: marked ? [...wanted.region] : null,
  };
}

function specFor(facts, width) {
  const curves = facts.systems.flatMap((system) =>
    system.nonreturn.map((nonreturn, place) => ({ system: system.name, nonreturn, error: system.error[place] })));
  const spec = structuredClone(facts.spec);
  spec.datasets.curves = curves;
  if (width < 480) lowerLegends(spec);
  return spec;
}

// On a narrow screen a legend in the corner would hide the curves, so it goes under them.
function lowerLegends(part) {
  if (!part || typeof part !== "object") return;
  if (part.legend && part.legend.orient) part.legend = { ...part.legend, orient: "bottom", direction: "vertical", columns: 1 };
  Object.entries(part).forEach(([name, value]) => { if (name !== "datasets") lowerLegends(value); });
}

// Brings a figure made by `explorer_html` to life. `state` is {x, ratio, align, region}: x is the share withheld, or with
// align "threshold" the threshold (null: return nothing); with align "cost" each system is at its cheapest threshold,
// with align "advised", where there is advice, at the one recommended for it.
// `onchange` hears the state and what each system does there. Gives {state(), points(), set(state), ready}.
export function explore(root, told, vegaEmbed, { state: wanted = {}, onchange = () => {} } = {}) {
  const systems = told.systems.map(prepared);
  const facts = { ...told, systems, floor: Math.min(...systems.map((system) => system.nonreturn[0])) };
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const parts = Object.fromEntries(["plot", "controls", "said", "status", "rows", "rated", "named", "x", "typed", "unit",
    "ratio", "price", "marking", "from", "to", "clear", "marked"].map((name) => [name, part(name)]));
  const radios = [...root.querySelectorAll('[data-part="align"]')];
  const stops = [...new Set(facts.systems.flatMap((system) => system.nonreturn))].sort((one, two) => one - two);
  let state = soundState(facts, wanted);
  let view = null;
  let drag = null;
  let frame = 0;

  function change(news, { quiet = false } = {}) {
    state = soundState(facts, { ...state, ...news });
    if (!frame) frame = requestAnimationFrame(() => { frame = 0; draw(quiet); });
  }

  function draw(quiet) {
    const points = facts.systems.map((system) => reading(system, state));
    points.forEach((point, place) => {
      const { cells } = parts.rows.rows[facts.order.indexOf(place)];
      cellTexts(point).forEach((text, column) => { cells[column + 1].textContent = unbroken(text); });
    });
    parts.rated.textContent = number(state.ratio);
    if (view) {
      const scales = { x: view.scale("x"), y: view.scale("y") };
      const marked = state.region ? [{ from: state.region[0], to: state.region[1] }] : [];
      view.data("handles", handleRows(facts, state, points, scales)).data("region", marked).run();
    }
    const said = unbroken(words(facts, state, points));
    parts.said.textContent = said;
    announce(said);
    drawControls(points);
    if (!quiet) onchange({ ...state, region: state.region && [...state.region], systems: points });
  }

  function drawControls(points) {
    const byThreshold = state.align === "threshold";
    radios.forEach((radio) => { radio.checked = radio.value === state.align; });
    parts.named.textContent = byThreshold ? "Threshold" : "Share withheld";
    parts.typed.setAttribute("aria-label", byThreshold ? "Threshold" : "Share withheld in percent");
    parts.unit.hidden = byThreshold;
    const share = state.align === "share" ? state.x : points[0].nonreturn;
    parts.x.value = share;
    const value = byThreshold ? (state.x === null ? "" : thresholdText(state.x)) : Number((100 * share).toFixed(2));
    if (document.activeElement !== parts.typed) parts.typed.value = value;
    parts.x.setAttribute("aria-valuetext", byThreshold ? `threshold ${cutoffWords(state.x)}` : `${percent(share)} withheld`);
    parts.ratio.value = state.ratio;
    parts.price.textContent = `${number(state.ratio)} of an error`;
    parts.ratio.setAttribute("aria-valuetext", parts.price.textContent);
    [parts.from, parts.to].forEach((input, end) => {
      if (state.region && document.activeElement !== input) input.value = Number((100 * state.region[end]).toFixed(2));
    });
    parts.marked.textContent = regionWords(points);
  }

  // Screen readers hear of a change at most once a second, and of the last one always.
  let spoken = -Infinity;
  let waiting = 0;
  function announce(said) {
    clearTimeout(waiting);
    waiting = setTimeout(() => { spoken = performance.now(); parts.status.textContent = said; },
      Math.max(0, spoken + 1000 - performance.now()));
  }

  // To a share withheld: by that of all systems, or by the threshold that one of them, the leader, has there.
  function moveTo(share, leader = facts.systems[0]) {
    const inside = clamped(share, 0, 1);
    if (state.align === "threshold") change({ x: leader.threshold[placeAtShare(leader, inside)] });
    else change({ align: "share", x: inside });
  }

  function align(kind) {
    const [first] = facts.systems;
    const place = placeOf(first, state);
    const share = state.align === "share" ? state.x : first.nonreturn[place];
    change({ align: kind, x: kind === "threshold" ? first.threshold[place] : share });
  }

  function typed() {
    if (parts.typed.value === "") return;
    const value = Number(parts.typed.value);
    if (state.align === "threshold") change({ x: value });
    else moveTo(value / 100);
  }

  const currentShare = () => (state.align === "share" ? state.x : facts.systems[0].nonreturn[placeOf(facts.systems[0], state)]);
  const known = (system, forwards) => {
    const place = placeOf(system, state) + (forwards ? 1 : -1);
    return system.nonreturn[clamped(place, 0, system.nonreturn.length - 1)];
  };

  // The next cutoff of any system; with one threshold for all the next one of the first.
  function neighbour(forwards) {
    if (state.align === "threshold") return known(facts.systems[0], forwards);
    const here = currentShare();
    if (forwards) return stops[Math.min(stops.length - 1, leading(stops, (stop) => stop <= here + 1e-9))];
    return stops[Math.max(0, leading(stops, (stop) => stop < here - 1e-9) - 1)];
  }

  const KEYS = {
    ArrowRight: () => neighbour(true),
    ArrowUp: () => neighbour(true),
    ArrowLeft: () => neighbour(false),
    ArrowDown: () => neighbour(false),
    PageUp: () => currentShare() + 0.05,
    PageDown: () => currentShare() - 0.05,
    Home: () => 0,
    End: () => 1,
  };

  function pressed(event) {
    if (!(event.key in KEYS) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    moveTo(KEYS[event.key]());
  }

  // Where a pointer is, as rates; the picture may be drawn smaller than it is.
  function placed(event) {
    const svg = parts.plot.querySelector("svg");
    const box = svg.getBoundingClientRect();
    const shrunk = box.width / svg.width.baseVal.value;
    const [padding, origin] = [view.padding(), view.origin()];
    const across = (event.clientX - box.left) / shrunk - padding.left - origin[0];
    const down = (event.clientY - box.top) / shrunk - padding.top - origin[1];
    return { share: clamped(view.scale("x").invert(across), 0, 1), error: view.scale("y").invert(down) };
  }

  function nearestSystem({ share, error }) {
    const distance = (system) => Math.abs(system.error[placeAtShare(system, share)] - error);
    return facts.systems.reduce((best, one) => (distance(one) < distance(best) ? one : best));
  }

  function grabbed(event) {
    if (!view || event.button !== 0 || !event.isPrimary) return;
    event.preventDefault();
    parts.plot.setPointerCapture(event.pointerId);
    const at = placed(event);
    drag = event.shiftKey ? { from: at.share } : { leader: nearestSystem(at) };
    if (event.shiftKey) parts.marking.open = true;
    parts.x.focus({ preventScroll: true });
    dragged(event);
  }

  function dragged(event) {
    if (!drag) return;
    const { share } = placed(event);
    if (drag.from === undefined) moveTo(share, drag.leader);
    else change({ region: [Math.min(drag.from, share), Math.max(drag.from, share)] });
  }

  // The lines of the rows that are pointed at or picked, in colour.
  const picked = new Set();
  let over = null;
  function drawPicked() {
    const shown = facts.systems.filter((system, place) => picked.has(place) || place === over);
    const rows = shown.flatMap((system) => system.nonreturn.map((nonreturn, place) => (
      { system: system.name, nonreturn, error: system.error[place], colour: system.picked })));
    view?.data("picked", rows).run();
  }

  function rowOf(event) {
    const row = event.target.closest("tr");
    return row && facts.systems.length > 1 ? facts.order[[...parts.rows.rows].indexOf(row)] : null;
  }

  function pick(event) {
    const place = rowOf(event);
    if (place === null) return;
    if (!picked.delete(place)) picked.add(place);
    parts.rows.rows[facts.order.indexOf(place)].setAttribute("aria-selected", String(picked.has(place)));
    drawPicked();
  }

  function marked() {
    const ends = [parts.from, parts.to].map((input) => input.value).filter((value) => value !== "");
    if (ends.length === 2) change({ region: ends.map((end) => Number(end) / 100).sort((one, two) => one - two) });
  }

  function listen() {
    parts.plot.addEventListener("pointerdown", grabbed);
    parts.plot.addEventListener("pointermove", dragged);
    for (const end of ["pointerup", "pointercancel"]) parts.plot.addEventListener(end, () => { drag = null; });
    parts.rows.addEventListener("pointerover", (event) => { over = rowOf(event); drawPicked(); });
    parts.rows.addEventListener("pointerleave", () => { over = null; drawPicked(); });
    parts.rows.addEventListener("click", pick);
    parts.x.addEventListener("input", () => moveTo(Number(parts.x.value)));
    parts.x.addEventListener("keydown", pressed);
    parts.typed.addEventListener("change", typed);
    parts.ratio.addEventListener("input", () => change({ align: "cost", ratio: Number(parts.ratio.value), x: currentShare() }));
    radios.forEach((radio) => radio.addEventListener("change", () => align(radio.value)));
    for (const input of [parts.from, parts.to]) input.addEventListener("change", marked);
    parts.clear.addEventListener("click", () => { parts.from.value = parts.to.value = ""; change({ region: null }); });
  }

  async function start() {
    listen();
    parts.controls.hidden = false;
    if (state.region) parts.marking.open = true;
    draw(true);
    const picture = parts.plot.querySelector("img");
    const live = document.createElement("div");
    live.className = "live";
    live.setAttribute("role", "img");
    live.setAttribute("aria-label", told.description);
    parts.plot.append(live);
    try {
      const how = { ast: true, actions: false, renderer: "svg", defaultStyle: false, tooltip: false };
      ({ view } = await vegaEmbed(live, specFor(facts, parts.plot.clientWidth), how));
      picture?.remove();
      parts.plot.classList.add("explorer-alive");
      draw(true);
    } catch (fault) {
      live.remove();
      console.error(fault);
    }
  }

  const points = () => facts.systems.map((system) => reading(system, state));
  return { state: () => ({ ...state }), points, set: (news) => change(news, { quiet: true }), ready: start() };
}
