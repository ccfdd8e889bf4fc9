// The frame of every page: theme, keyboard, lists with a cursor. Every page works without it.
const root = document.documentElement;
const order = { "": "light", light: "dark", dark: "" };

function switchTheme() {
  const next = order[root.dataset.theme ?? ""];
  if (next) root.dataset.theme = next;
  else delete root.dataset.theme;
  try {
    localStorage.setItem("theme", next);
  } catch {
    // Storage is off: the choice lasts until the page is left.
  }
}

function move(step) {
  const rows = [...document.querySelectorAll("[data-row]")].filter((row) => row.checkVisibility());
  if (!rows.length) return;
  const current = rows.findIndex((row) => row.classList.contains("cursor") || row.contains(document.activeElement));
  const start = current < 0 ? rows.findIndex((row) => row.matches("[aria-current]")) : current;
  const next = rows[Math.max(0, Math.min(rows.length - 1, start + step))];
  rows.forEach((row) => row.classList.remove("cursor"));
  next.classList.add("cursor");
  (next.matches("a") ? next : next.querySelector("a"))?.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function select() {
  document.querySelector("[data-row].cursor input[type=checkbox]")?.click();
}

function typing(target) {
  return target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");
}

// A key for a button whose form still wants words leads to the words; one for several things, or against somebody, leads to
// the button itself first.
function press(button) {
  const empty = button.type === "submit" && button.form?.querySelector("textarea:invalid, input:invalid");
  if (empty) empty.focus();
  else if (button.hasAttribute("data-first-focus") && button !== document.activeElement) button.focus();
  else button.click();
}

// The button of a key: the line's that the keys are on, else the page's.
function keyed(key) {
  const wanted = `[data-key="${CSS.escape(key)}"]:not(:disabled)`;
  const own = document.querySelector(`[data-row].cursor ${wanted}`);
  return own ?? [...document.querySelectorAll(wanted)].find((button) => !button.closest("[data-row]"));
}

const keys = {
  j: () => move(1),
  k: () => move(-1),
  x: select,
  "/": () => [...document.querySelectorAll("[data-find]")].find((box) => box.checkVisibility())?.focus(),
  "?": () => document.getElementById("keys")?.togglePopover(),
};

document.querySelectorAll("[data-theme-switch]").forEach((button) => {
  button.hidden = false;
  button.addEventListener("click", switchTheme);
});

// What was refused stands open again, with its error.
document.querySelector("[popover][data-open]")?.showPopover();

// A button or link says its key with data-key; keys are off while someone types, except Escape.
document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing(event.target) && event.key !== "Escape") return;
  if (event.key === "Escape" && document.querySelector("[popover]:popover-open")) return;
  const button = keyed(event.key);
  if (button) press(button);
  else if (Object.hasOwn(keys, event.key)) keys[event.key]();
  else return;
  event.preventDefault();
});
