// The chat: what the stream says is fetched again and morphed in place, forms are sent without leaving the page,
// and the draft of a message stays on this device. Every page works without it.
const chat = () => document.getElementById("chat");
const LIST_EVERY = 20000; // milliseconds
const DESK_EVERY = 10000; // as often as a reviewer's page says that somebody looks at it
// Whoever asked for all of a long conversation goes on seeing all of it.
const whole = (address) => (new URLSearchParams(location.search).has("all") ? `${address}?all` : address);
const byId = (id) => document.getElementById(id);

// ── Taking over what changed ────────────────────────────────────────────────────────────────────
let askedAt = 0; // when the answer that is taken over was asked for
let streamedAt = 0; // when the stream last said what the agent is writing

const callbacks = {
  // What the browser owns (typed text, open drawers) is marked with data-keep and left as it is.
  beforeNodeMorphed(old, fresh) {
    if (old.nodeType !== Node.ELEMENT_NODE) return true;
    // A page that was asked for before the agent began to write does not know of it yet.
    if (old.id === "draft" && askedAt < streamedAt) return false;
    if (old.hasAttribute("data-keep")) {
      if (old.id === "say" && fresh.placeholder) old.placeholder = fresh.placeholder;
      return false;
    }
    // A draft's row is up to 200 ms older than what was streamed: never write backwards.
    return !(old.id === "draft-text" && fresh.textContent && old.textContent.startsWith(fresh.textContent));
  },
  // A message on its way is not in the page of a server that has not got it yet.
  beforeNodeRemoved(node) {
    return !(node.nodeType === Node.ELEMENT_NODE && node.hasAttribute("data-own"));
  },
  beforeAttributeUpdated(name, node) {
    // What was opened stays open, and a line of the list leads where the list's filters say.
    return !((name === "open" && node.matches("details")) || (name === "href" && node.matches(".conv")));
  },
};

// Each part of the answer takes the place of the element with its id.
function morph({ html, asked }) {
  askedAt = asked;
  const fresh = new DOMParser().parseFromString(html, "text/html").body;
  keepingPlace(() => {
    for (const part of [...fresh.children]) {
      const old = part.id && byId(part.id);
      if (old) Idiomorph.morph(old, part, { callbacks });
    }
  });
}

// The reading position never jumps: a reader at the end stays at the end, any other stays at what they read.
function keepingPlace(change) {
  const feed = byId("feed");
  const atEnd = !feed || Math.abs(feed.scrollTop) < 40;
  const mark = atEnd ? null : firstVisible(feed);
  const before = mark?.getBoundingClientRect().top;
  change();
  if (mark?.isConnected) feed.scrollTop += mark.getBoundingClientRect().top - before;
  else if (atEnd && feed) feed.scrollTop = 0;
}

function firstVisible(feed) {
  const top = feed.getBoundingClientRect().top;
  return [...feed.querySelectorAll("#entries > li")].find((item) => item.getBoundingClientRect().bottom > top);
}

// What the server answers, and when it was asked.
async function ask(address, options = {}) {
  const asked = performance.now();
  const response = await fetch(address, { headers: { "HX-Request": "true" }, redirect: "manual", ...options });
  return { response, html: await response.text(), asked };
}

let fetching = false;
let again = false;

async function refresh() {
  if (fetching) {
    again = true;
    return;
  }
  fetching = true;
  try {
    const answer = await ask(whole(chat().dataset.feed));
    if (answer.response.ok) morph(answer);
    else if (answer.response.type === "opaqueredirect" || answer.response.status === 403) ended();
  } catch {
    // The stream notices that the server is away, and refreshes when it is back.
  } finally {
    fetching = false;
    if (again) {
      again = false;
      refresh();
    }
  }
}

// How the others stand; this conversation's own line comes with each change.
async function refreshList() {
  if (document.hidden) return;
  try {
    const answer = await ask(chat().dataset.list);
    if (answer.response.ok) morph(answer);
  } catch {
    // Next time.
  }
}

// Who looks at a request that waits is no event.
function refreshWaiting() {
  if (!document.hidden && "waits" in byId("dock").dataset) refresh();
}

function ended() {
  byId("ended").hidden = false;
  source?.close();
}

// ── The stream ──────────────────────────────────────────────────────────────────────────────────
let source = null;
let lost = null;
let hiddenSince = null;

function live(on) {
  byId("live").hidden = !on;
  if (on) {
    clearTimeout(lost);
    lost = null;
    byId("lost").hidden = true;
  } else if (!lost) {
    const since = new Date().toLocaleTimeString();
    lost = setTimeout(() => notLive(since), 3000); // a reconnect within a moment is nobody's concern
  }
}

function notLive(since) {
  byId("lost").hidden = false;
  byId("lost").querySelector("time").textContent = since;
}

function listen() {
  source?.close();
  source = new EventSource(byId("talk").dataset.stream);
  let first = true;
  source.addEventListener("open", () => {
    live(true);
    if (!first) refresh();
    first = false;
  });
  source.addEventListener("error", () => {
    live(false);
    // A closed stream does not come back by itself: the answer was no stream, so ask what it was.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => refresh().then(listen), 2000);
  });
  source.addEventListener("draft", (event) => draft(event.data));
  for (const kind of ["feed", "status", "escalation"]) source.addEventListener(kind, refresh);
}

// The text comes escaped, as the page itself would write it.
function draft(html) {
  const text = new DOMParser().parseFromString(html, "text/html").documentElement.textContent;
  streamedAt = performance.now();
  keepingPlace(() => {
    byId("draft-text").textContent = text;
    byId("draft").hidden = !text;
    byId("nothing")?.remove();
  });
}

// A browser opens six connections to a server: a page that nobody sees gives its own back.
document.addEventListener("visibilitychange", () => {
  if (!source) return;
  if (document.hidden) {
    hiddenSince = setTimeout(() => source.close(), 60000);
    return;
  }
  clearTimeout(hiddenSince);
  if (source.readyState === EventSource.CLOSED) refresh().then(listen);
});

// ── Sending ─────────────────────────────────────────────────────────────────────────────────────
let last = Promise.resolve(); // one request after the other: messages keep the order in which they were written

function post(form, body) {
  const answer = last.then(() => ask(whole(form.getAttribute("action")), { method: "POST", body }));
  last = answer.catch(() => {});
  return answer;
}

async function submit(form) {
  const message = form.matches(".composer") ? takeMessage(form) : null;
  try {
    const answer = await post(form, message?.body ?? new URLSearchParams(new FormData(form)));
    if (answer.response.type === "opaqueredirect") throw new SessionOver();
    answered(form, answer, message);
  } catch (error) {
    if (message) putBack(form, message);
    if (error instanceof SessionOver) ended();
    else complain("The server could not be reached. Nothing is lost; try again.");
  }
}

class SessionOver extends Error {}

function answered(form, answer, message) {
  if (answer.response.ok) {
    byId("alerts").replaceChildren();
    if (form.dataset.hides) byId(form.dataset.hides)?.hidePopover();
    if (message) {
      remember(form);
      message.shown?.removeAttribute("data-own"); // from here on the server's page decides where it stands
    }
  } else if (message) putBack(form, message);
  if (answer.html.includes('id="talk"')) morph(answer);
  else byId("alerts").innerHTML = answer.html; // one of our own strips: nothing in it comes from people or models
}

function complain(sentence) {
  const place = byId("say-error");
  if (place) place.textContent = sentence;
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-live]")) return;
  event.preventDefault();
  submit(event.target);
});

// ── A message on its way ────────────────────────────────────────────────────────────────────────
// Its id goes with it, so that sending it again after a lost answer is the same message. The box is free at once.
function takeMessage(form) {
  const body = new URLSearchParams(new FormData(form));
  const { message, text } = form.elements;
  const taken = { body, id: message.value, text: text.value, shown: show(message.value, text.value) };
  message.value = freshId();
  text.value = "";
  fit(text);
  complain("");
  byId("feed").scrollTop = 0;
  return taken;
}

// Shown at once, unless it will wait its turn.
function show(id, text) {
  const own = byId("own");
  if (!own) return null;
  const item = own.content.firstElementChild.cloneNode(true);
  item.id = `${own.dataset.prefix}${id}`;
  item.querySelector(".words").textContent = text.trim();
  byId("nothing")?.remove();
  byId("entries").insertBefore(item, byId("draft"));
  return item;
}

function putBack(form, taken) {
  const { message, text } = form.elements;
  taken.shown?.remove();
  if (!text.value) message.value = taken.id;
  text.value = text.value ? `${taken.text}\n${text.value}` : taken.text;
  remember(form);
  fit(text);
}

function freshId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // randomUUID is for secure pages only
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

// ── The composer ────────────────────────────────────────────────────────────────────────────────
function fit(area) {
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight, 240)}px`;
}

function remember(form) {
  try {
    const { message, text } = form.elements;
    if (text.value) localStorage.setItem(form.dataset.draft, JSON.stringify([message.value, text.value]));
    else localStorage.removeItem(form.dataset.draft);
  } catch {
    // Storage is off or full: the text is in the box all the same.
  }
}

// A page that was left while its message was on its way does not offer it again once it has arrived.
function recall(form) {
  const { message, text } = form.elements;
  try {
    const [id, draft] = JSON.parse(localStorage.getItem(form.dataset.draft)) ?? ["", ""];
    const arrived = byId(`q-${id}`) || byId(`m-staff:${id}`) || byId(`m-said:${id}`);
    if (draft && !text.value && !arrived) [message.value, text.value] = [id, draft];
  } catch {
    // Storage is off, or holds what another version wrote.
  }
  remember(form);
  fit(text);
}

document.addEventListener("input", (event) => {
  if (event.target.id !== "say") return;
  remember(event.target.form);
  fit(event.target);
});

document.addEventListener("keydown", (event) => {
  if (event.target.id !== "say" || event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  if (event.target.value.trim()) event.target.form.requestSubmit();
});

if (byId("talk")?.dataset.stream) {
  listen();
  if (chat().dataset.list) setInterval(refreshList, LIST_EVERY);
  setInterval(refreshWaiting, DESK_EVERY);
  if (byId("composer")) {
    recall(byId("composer"));
    if (matchMedia("(min-width: 60.01rem)").matches) byId("say").focus({ preventScroll: true });
  }
}
