// The outbox: lines and figures are fetched again every few seconds, not while nobody looks or a choice is being made.
// Without this file they are fetched all the same.
const list = () => document.getElementById("live");
const chosen = () => document.querySelector("[data-select]:checked, #several [name=every]:checked");
const busy = () => document.hidden || chosen() || document.querySelector(":popover-open");

document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target === list() && busy()) event.preventDefault();
});

document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.target !== list()) return;
  if (!event.detail.isError && !event.detail.serverResponse.includes('id="live"')) location.reload(); // the session is over
  else if (busy()) event.detail.shouldSwap = false; // chosen since it was asked for
});

// The line that the keys are on stays so.
Idiomorph.defaults.callbacks.beforeAttributeUpdated = (name, node) => !(name === "class" && node.matches("[data-row]"));
