// The reconcile desk: the bar says what the chosen exit does. Without this it says that one is to be chosen.
function tell() {
  const chosen = document.querySelector("#settle [name=kind]:checked");
  if (!chosen) return;
  document.querySelector("[data-then]:not(input)")?.replaceChildren(chosen.dataset.then);
  document.querySelector("[data-verb]:not(input)")?.replaceChildren(chosen.dataset.verb);
}

document.addEventListener("change", tell);
document.addEventListener("htmx:afterSwap", tell);
tell();
