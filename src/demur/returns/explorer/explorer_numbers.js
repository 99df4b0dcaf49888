// Numbers as the tables write them. Python rounds an exact half to the even digit and toFixed away from zero; a half
// with d decimals before it is exact in binary just when x * 2^(d + 1) is odd.
function fixed(x, decimals) {
  const text = x.toFixed(decimals);
  const half = Math.abs(x * 2 ** (decimals + 1)) % 2 === 1 && Number(text.at(-1)) % 2 === 1;
  return half ? (Number(text) - 10 ** -decimals).toFixed(decimals) : text;
}

const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

export function percent(rate) {
  const shown = 100 * rate;
  return `${trimmed(fixed(shown, (shown >= 0.1 && shown <= 99.9) || shown === 0 || shown === 100 ? 1 : 2))} %`;
}

export function tabledPercent(rate) {
  const even = rate === 0 || rate === 1 || (rate >= 0.0005 && rate <= 0.9995);
  return even ? `${fixed(100 * rate, 1)} %` : percent(rate);
}

export function number(value) {
  if (!Number.isFinite(value)) return "undefined";
  if (value === 0) return "0";
  const [digits, power] = value.toExponential(3).split("e").map((part, place) => (place ? Number(part) : part));
  if (power < -4 || power >= 4) {
    return `${trimmed(digits)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
  }
  return trimmed(fixed(value, 3 - power));
}

export function count(value) {
  const whole = Math.abs(value - Math.round(value)) < 1e-6;
  return (whole ? Math.round(value).toString() : number(value)).replace(/^\d{4,}$/, (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ","));
}

// A threshold in the fewest digits that read back as the same number, as `threshold_text` in Python writes it.
export function thresholdText(threshold) {
  if (threshold === 0 || !Number.isFinite(threshold)) return String(threshold).replace("Infinity", "inf");
  const [mantissa, power] = threshold.toExponential().split("e").map((part, place) => (place ? Number(part) : part));
  const sign = threshold < 0 ? "-" : "";
  const digits = mantissa.replace(/[-.]/g, "");
  const whole = digits.slice(0, Math.max(0, power + 1)).padEnd(power + 1, "0") || "0";
  const part = power < 0 ? "0".repeat(-power - 1) + digits : digits.slice(power + 1);
  const positional = `${sign}${whole}${part && "."}${part}`;
  const scientific = `${mantissa}e${power}`;
  const usual = Math.abs(threshold) >= 1e-4 && Math.abs(threshold) < 1e6;
  return usual || positional.length <= scientific.length ? positional : scientific;
}

// No line breaks between a number and its percent sign.
export const unbroken = (text) => text.replaceAll(" %", "\u00a0%");
export const listed = (parts) => (parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`);
