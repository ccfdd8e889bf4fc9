// One case of the review desk: a ticked box is sent at once, and a rejection shows the words that the model will read.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submits]")) event.target.form?.requestSubmit();
});

const sheet = document.getElementById("reject");
const told = sheet?.querySelector("[data-tells]");

function tell() {
  const chosen = sheet.querySelector("[name=reason]:checked")?.dataset.said ?? "";
  const words = [chosen, sheet.querySelector("[name=text]").value.trim()].filter(Boolean).join(" ");
  told.textContent = words || told.dataset.tells;
}

if (told) {
  told.dataset.tells = told.textContent;
  sheet.addEventListener("input", tell);
  tell();
}
