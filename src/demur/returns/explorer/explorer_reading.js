// What a system does at an operating point, from the exact counts at its cutoffs.

// A threshold as a number to compare: null returns nothing, so it lies above all.
const LIMITS = { inf: Infinity, "-inf": -Infinity };
const level = (threshold) => (threshold === null ? Infinity : LIMITS[threshold] ?? threshold);

// How many leading entries of a rising list satisfy a condition that once false stays false.
export function leading(list, holds) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(list[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

export function prepared(system) {
  return {
    ...system,
    levels: system.threshold.map(level),
    nonreturn: system.returned.map((kept) => (system.total - kept) / system.total),
    error: system.wrong.map((wrong) => wrong / system.total),
  };
}

// The cutoff that withholds most without going beyond a share; the first where the system withholds more by itself.
export const placeAtShare = (system, share) => Math.max(0, leading(system.nonreturn, (x) => x <= share + 1e-9) - 1);
const placeAtThreshold = (system, threshold) =>
  Math.min(system.levels.length - 1, leading(system.levels, (known) => known < level(threshold)));
export const stretchAt = (system, ratio) => system.path.find((part) => part.from <= ratio && ratio <= part.to) ?? system.path[0];

export function placeOf(system, state) {
  if (state.align === "advised") return system.advised;
  if (state.align === "cost") return stretchAt(system, state.ratio).place;
  return state.align === "threshold" ? placeAtThreshold(system, state.x) : placeAtShare(system, state.x);
}

// Where all cutoffs are told, any threshold between two of them splits the answers as the upper one does.
function shownThreshold(system, place, state) {
  const own = system.threshold[place];
  return state.align === "threshold" && system.whole && own !== null ? state.x : own;
}

// A cutoff further below the share asked for than half a point and one input: answers of one confidence go together.
const isOutOfReach = (system, nonreturn, state) =>
  state.align === "share" && state.x - nonreturn > Math.max(0.005, system.n < 50 ? 0 : 1 / system.n) + 1e-9;

// The error rate at a share itself, the same for every system: between two cutoffs on the straight line, as where tied
// answers are returned by chance.
function errorAtShare(system, place, share) {
  const [from, to] = [system.nonreturn[place], system.nonreturn[place + 1]];
  if (to === undefined || share <= from) return system.error[place];
  return system.error[place] + Math.min(1, (share - from) / (to - from)) * (system.error[place + 1] - system.error[place]);
}

export function reading(system, state) {
  const place = placeOf(system, state);
  const [returned, wrong] = [system.returned[place], system.wrong[place]];
  const [nonreturn, error] = [system.nonreturn[place], system.error[place]];
  return {
    name: system.name,
    error_at_share: state.align === "share" ? errorAtShare(system, place, state.x) : error,
    threshold: shownThreshold(system, place, state),
    nonreturn,
    error,
    returned,
    right: returned - wrong,
    wrong,
    withheld: system.total - returned,
    missed: system.right - returned + wrong,
    cost: error + state.ratio * nonreturn,
    tied: isOutOfReach(system, nonreturn, state),
    region: regionOf(system, state),
  };
}

// The answers between two shares withheld: those of at least `low` and below `high` in confidence (null: no bound).
function regionOf(system, state) {
  if (!state.region) return null;
  const [start, stop] = state.region.map((share) => placeAtShare(system, share));
  const between = (counts) => counts[start] - counts[stop];
  return {
    low: system.threshold[start],
    high: system.threshold[stop],
    answers: between(system.returned),
    wrong: between(system.wrong),
  };
}

// The error rate that sentences compare: where ties keep a system from a share, that at the share itself.
export const rateOf = (point, tied) => (tied.length ? point.error_at_share : point.error);

export function extremes(points, tied) {
  return [
    points.reduce((least, one) => (rateOf(one, tied) < rateOf(least, tied) ? one : least)),
    points.reduce((most, one) => (rateOf(one, tied) > rateOf(most, tied) ? one : most)),
  ];
}
