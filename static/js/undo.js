// What can be taken back for a while: the seconds that are left, counted on this computer's clock from what the server said.
// Without it the button stands until the page is drawn again, and a late click is told so.
const ends = new WeakMap();

function tick() {
  for (const place of document.querySelectorAll("[data-undo]")) {
    const said = place.dataset.undo;
    if (ends.get(place)?.said !== said) ends.set(place, { said, at: performance.now() + Number(said) * 1000 });
    const left = Math.ceil((ends.get(place).at - performance.now()) / 1000);
    place.hidden = left <= 0;
    place.querySelector("[data-left]").textContent = left > 90 ? `${Math.ceil(left / 60)} min` : `${left} s`;
  }
}

tick();
setInterval(tick, 250);
