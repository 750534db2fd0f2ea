// The lab's script: the visitor's own presses live, the replay, and the arrow keys.
// Everything it does can also be done without it, by forms and links.
(() => {
  "use strict";
  const $ = (id) => document.getElementById(id);
  const board = $("board");

  // Live: the board again after every change, then the finished page.
  let watching = "";
  function watch(runs, address) {
    if (watching === runs) return;
    watching = runs;
    const source = new EventSource("/lab/live?runs=" + encodeURIComponent(runs));
    source.addEventListener("board", (event) => { board.innerHTML = JSON.parse(event.data); });
    source.addEventListener("ended", () => { source.close(); location.assign(address); });
  }
  const setup = $("setup");
  if (setup && board && window.EventSource) {
    setup.addEventListener("submit", (event) => {
      event.preventDefault();
      const button = event.submitter;
      const presses = button && button.id === "pay";
      fetch(presses ? "/lab/presses" : "/lab/runs", {
        method: "POST",
        headers: { accept: "application/json", "content-type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams(new FormData(setup)),
      }).then((answer) => {
        if (!answer.ok) throw new Error(String(answer.status));
        return answer.json();
      }).then((told) => watch(told.runs.join(","), told.address))
        .catch(() => location.assign("/lab"));
    });
  }

  // Replay: what lies after the playhead is grey, without outcome.
  const head = $("t-head");
  if (head && board && !board.dataset.running) {
    const shown = () => [...board.querySelectorAll(".board")].find((b) => b.offsetParent) || board;
    const rows = () => [...new Set([...shown().querySelectorAll("g.ev")].map((g) => Number(g.dataset.row)))].sort((a, b) => a - b);
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let timer = 0;
    const last = () => rows().length;
    const show = (step) => {
      const all = rows();
      const row = step >= all.length ? Infinity : step === 0 ? -1 : all[step - 1];
      for (const part of board.querySelectorAll("[data-row]")) {
        part.classList.toggle("future", Number(part.dataset.row) > row);
      }
      head.max = all.length;
      head.value = step;
      const said = [...shown().querySelectorAll("g.ev")].filter((g) => Number(g.dataset.row) === row).map((g) => g.dataset.says).join(" ");
      head.setAttribute("aria-valuetext", said || String(step));
      $("t-says").textContent = said;
    };
    const play = $("t-play");
    const stop = () => { clearTimeout(timer); timer = 0; play.textContent = play.dataset.play; };
    const step = (by) => { stop(); show(Math.max(0, Math.min(last(), Number(head.value) + by))); };
    const on = () => {
      if (Number(head.value) >= last()) return stop();
      show(Number(head.value) + 1);
      timer = setTimeout(on, calm ? 900 : 20 * Number($("t-speed").value));
    };
    const toggle = () => {
      if (timer) return stop();
      if (Number(head.value) >= last()) show(0);
      play.textContent = play.dataset.pause;
      timer = setTimeout(on, 200);
    };
    $("transport").hidden = false;
    show(last());
    play.addEventListener("click", toggle);
    $("t-first").addEventListener("click", () => step(-1e6));
    $("t-back").addEventListener("click", () => step(-1));
    $("t-on").addEventListener("click", () => step(1));
    $("t-last").addEventListener("click", () => step(1e6));
    head.addEventListener("input", () => { stop(); show(Number(head.value)); });
    document.addEventListener("keydown", (event) => {
      if (event.target.closest("input,select,textarea,button,summary,a") && event.target !== head) return;
      const does = { " ": toggle, ArrowLeft: () => step(-1), ArrowRight: () => step(1), Home: () => step(-1e6), End: () => step(1e6) }[event.key];
      if (does && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); does(); }
    });
  }
  if (board && board.dataset.running) watch(board.dataset.runs, location.href);

  // Presenter: what comes later is grey; the arrow keys go through the steps.
  const stage = $("pboard");
  if (stage) {
    const row = Number(stage.dataset.row);
    let now = null;
    for (const part of stage.querySelectorAll(".board [data-row]")) {
      part.classList.toggle("future", Number(part.dataset.row) > row);
      if (Number(part.dataset.row) === row) now = part;
    }
    if (now) now.scrollIntoView({ block: "center" });
    document.addEventListener("keydown", (event) => {
      const to = { ArrowRight: "a[rel=next]", " ": "a[rel=next]", ArrowLeft: "a[rel=prev]", Escape: "#leave" }[event.key];
      const link = to && document.querySelector(to);
      if (link) { event.preventDefault(); link.click(); }
    });
  }

  // Matrix: arrow keys move between cells.
  const matrix = document.querySelector(".matrix");
  if (matrix) {
    matrix.addEventListener("keydown", (event) => {
      const cell = event.target.closest("td");
      const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!cell || !move) return;
      const row = matrix.rows[cell.parentElement.rowIndex + move[0]];
      const next = row && row.cells[cell.cellIndex + move[1]];
      const link = next && next.querySelector("a");
      if (link) { event.preventDefault(); link.focus(); }
    });
  }
})();
