// The inbox: the list is fetched again every few seconds and morphed in place, what is selected is shown in a tray,
// and acts are sent without leaving the page. Every part of it works without this file, by reload.
const EVERY = 4000; // milliseconds
const byId = (id) => document.getElementById(id);
const boxes = () => [...document.querySelectorAll("input[data-select]")];
const chosen = () => boxes().filter((box) => box.checked).map((box) => box.value);

// ── Taking over what changed ────────────────────────────────────────────────────────────────────
const callbacks = {
  beforeNodeMorphed(old) {
    return !(old.nodeType === Node.ELEMENT_NODE && old.hasAttribute("data-select")); // what is ticked is the reader's
  },
  beforeAttributeUpdated(name, node) {
    return !(name === "class" && node.matches("[data-row]")); // and so is the line that the keys are on
  },
};

// Each part of the answer takes the place of the element with its id; what is read stays where it is.
function morph(html) {
  const fresh = new DOMParser().parseFromString(html, "text/html").body;
  const first = scrollY > 0 && [...document.querySelectorAll("[data-row]")].find((row) => row.getBoundingClientRect().bottom > 0);
  const before = first && first.getBoundingClientRect().top;
  for (const part of [...fresh.children]) {
    const old = part.id && byId(part.id);
    if (old) Idiomorph.morph(old, part, { callbacks });
  }
  const open = document.querySelector("#tabs .count")?.firstChild; // the first view is what the menu counts
  const menu = document.querySelector(".rail a[aria-current] .count")?.firstChild;
  if (open && menu) menu.data = open.data;
  if (first?.isConnected) scrollBy(0, first.getBoundingClientRect().top - before);
}

async function ask(address, options = {}) {
  const response = await fetch(address, { headers: { "HX-Request": "true" }, redirect: "manual", ...options });
  if (response.type === "opaqueredirect" || response.status === 403) location.reload(); // the session is over
  return { text: await response.text(), ok: response.status < 500, html: response.status !== 403 };
}

// The address without what is selected: that is in the boxes by now.
function here() {
  const query = new URLSearchParams(location.search);
  query.delete("select");
  return `${location.pathname}?${query}`;
}

// ── Live ────────────────────────────────────────────────────────────────────────────────────────
let busy = false;

async function refresh() {
  if (busy || document.hidden) return;
  busy = true;
  try {
    const answer = await ask(here());
    if (!answer.ok) throw new Error("no list");
    morph(answer.text);
    live(true);
    await check();
  } catch {
    live(false); // and the next try is soon
  } finally {
    busy = false;
  }
}

function live(on) {
  const clock = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  byId("live").hidden = !on;
  byId("live-off").hidden = true;
  if (on) byId("live").querySelector("time").textContent = clock;
  else if (byId("lost").hidden) byId("lost").querySelector("time").textContent = clock;
  byId("lost").hidden = on;
}

// ── What is selected ────────────────────────────────────────────────────────────────────────────
let shown = ""; // which selection the tray is about

function address() {
  const query = new URLSearchParams(location.search);
  query.delete("select");
  for (const id of chosen()) query.append("select", id);
  return `${byId("selection").action.replace(/\/$/, "")}/tray/?${query}`;
}

async function showTray() {
  const wanted = chosen().join();
  try {
    const answer = await ask(address());
    if (!answer.ok || wanted !== chosen().join()) return; // more was ticked meanwhile: that answer is on its way
    shown = wanted;
    byId("tray").outerHTML = answer.text;
    ready();
  } catch {
    live(false);
  }
}

// The tray does not change under the reader's finger: it says that it is out of date, and shows itself again when asked.
// A line that is gone was decided by somebody.
async function check() {
  if (!shown && !chosen().length) return;
  if (chosen().join() !== shown) {
    const gone = shown.split(",").some((id) => id && !byId(`s-${id}`));
    if (!gone) return showTray();
  }
  if (!byId("tray").dataset.version) return;
  const query = new URLSearchParams(location.search);
  query.delete("select");
  for (const id of shown.split(",")) query.append("select", id);
  const answer = await ask(`${byId("selection").action.replace(/\/$/, "")}/tray/?${query}`);
  const fresh = new DOMParser().parseFromString(answer.text, "text/html").getElementById("tray");
  if (fresh && byId("tray-stale") && fresh.dataset.version !== byId("tray").dataset.version) byId("tray-stale").hidden = false;
}

function ready() {
  for (const part of document.querySelectorAll("[data-without-script]")) part.hidden = true;
  document.querySelector("#tray [popover][data-open]")?.showPopover();
}

function selectNothing() {
  for (const box of boxes()) box.checked = false;
  showTray();
}

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-select]")) showTray();
  else if (event.target.matches("#filters select")) event.target.form.requestSubmit();
});

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-none], [data-again], [data-away]");
  if (!target) return;
  event.preventDefault();
  if (target.matches("[data-none]")) selectNothing();
  else if (target.matches("[data-again]")) showTray();
  else byId("results").replaceChildren();
});

// ── Acts ────────────────────────────────────────────────────────────────────────────────────────
document.addEventListener("submit", (event) => {
  if (!event.target.matches("#acts, #together")) return;
  event.preventDefault();
  send(event.target, event.submitter);
});

async function send(form, submitter) {
  if (form.dataset.sending) return; // a double click is one act
  form.dataset.sending = "yes";
  const focused = document.activeElement?.closest("[data-row]")?.id;
  try {
    const body = new URLSearchParams(new FormData(form, submitter));
    const answer = await ask(form.getAttribute("action"), { method: "POST", body });
    taken(form, answer, focused);
  } catch {
    live(false);
  } finally {
    delete form.dataset.sending;
  }
}

function taken(form, answer, focused) {
  if (!answer.ok) {
    byId("alerts").innerHTML = answer.text; // one of our own strips: nothing in it comes from people or models
    return;
  }
  const together = form.id === "together";
  const html = new DOMParser().parseFromString(answer.text, "text/html");
  if (!together) html.getElementById("tray")?.remove(); // what is selected was not asked about
  if (together && !html.querySelector("#tray.tray")) for (const box of boxes()) box.checked = false;
  const tray = html.getElementById("tray");
  tray?.remove();
  morph(html.body.innerHTML);
  if (tray) {
    shown = tray.dataset.version ? shown : "";
    byId("tray").replaceWith(document.adoptNode(tray));
  }
  ready();
  (byId(focused)?.querySelector("a") ?? byId("results")).focus({ preventScroll: true });
}

document.querySelector("#tabs [aria-current]")?.scrollIntoView({ inline: "nearest", block: "nearest" });
ready();
shown = byId("tray")?.dataset.version ? chosen().join() : "";
live(true);
setInterval(refresh, EVERY);
document.addEventListener("visibilitychange", refresh);
