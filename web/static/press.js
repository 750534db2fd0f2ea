// Each press of Pay leaves its numbered ring. Nothing is prevented or disabled:
// the server is what makes a second press harmless.
document.addEventListener("click", (event) => {
  const pay = event.target.closest("button.pay");
  if (!pay) return;
  let rings = pay.querySelector(".presses-made");
  if (!rings) {
    rings = document.createElement("span");
    rings.className = "presses-made";
    rings.setAttribute("aria-hidden", "true");
    pay.append(rings);
  }
  const presses = Number(pay.dataset.presses || 0) + 1;
  pay.dataset.presses = presses;
  const ring = document.createElement("span");
  ring.className = "ring";
  ring.textContent = presses;
  rings.append(ring);
  setTimeout(() => ring.remove(), 600);
});
