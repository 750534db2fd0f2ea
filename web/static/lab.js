// The lab's script: the visitor's own presses live, the replay, and the arrow keys.
// Everything it does can also be done without it, by forms and links.
(() => {
  "use strict";
  const $ = (id) => document.getElementById(id);
  const all = (root, query) => [...root.querySelectorAll(query)];
  const board = $("board");
  const typing = (event) => event.target.closest("select,textarea,input:not([type=range])");
  const plain = (event) => !event.ctrlKey && !event.metaKey && !event.altKey;
  const seen = (element) => element.getClientRects().length > 0;

  // Live: the board again after every change, then the finished page.
  let watching = "";
  function watch(runs, address) {
    if (watching === runs) return;
    watching = runs;
    board.dataset.live = "yes";
    document.body.classList.add("is-running");
    const intro = $("intro");
    intro.hidden = false;
    intro.querySelector("h2").textContent = intro.dataset.running;
    const source = new EventSource("/lab/live?runs=" + encodeURIComponent(runs));
    source.addEventListener("board", (event) => { board.innerHTML = JSON.parse(event.data); });
    source.addEventListener("ended", () => { source.close(); location.assign(address); });
  }
  const setup = $("setup");
  if (setup && board && window.EventSource) {
    setup.addEventListener("submit", (event) => {
      event.preventDefault();
      const presses = event.submitter && event.submitter.id === "pay";
      const path = presses ? "/lab/presses" : "/lab/runs";
      fetch(path, {
        method: "POST",
        headers: { accept: "application/json", "content-type": "application/x-www-form-urlencoded" },
        body: new URLSearchParams(new FormData(setup)),
      }).then((answer) => {
        if (answer.ok) return answer.json().then((told) => watch(told.runs.join(","), told.address));
        // A refusal has a page that says why.
        setup.action = path;
        return setup.submit();
      }).catch(() => location.assign("/lab"));
    });
  }
  if (board && board.dataset.running) watch(board.dataset.runs, location.href);

  // On small screens one diagram at a time; these choose which.
  const sides = $("sides");
  const halves = all(document, ".half");
  const names = board ? all(board, "section.narrow .board-name").map((name) => name.textContent) : [];
  const look = (side) => {
    board.dataset.side = side;
    all(sides, "button").forEach((button, index) => button.setAttribute("aria-pressed", String(index === side)));
    board.dispatchEvent(new Event("turned"));
  };
  if (sides && names.length > 1) {
    names.forEach((name, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", () => look(index));
      sides.append(button);
    });
    sides.hidden = false;
    look(0);
  }
  const focusSide = (side) => {
    if (!halves[side]) return;
    if (names.length > 1) look(side);
    halves[side].focus();
  };

  // Replay: what lies after the playhead is grey, without outcome.
  const head = $("t-head");
  if (head && !board.dataset.running) {
    const shown = () => all(board, ".board").find(seen) || board;
    const moments = () => {
      const rows = new Map();
      for (const g of all(shown(), "g.ev")) {
        const row = Number(g.dataset.row);
        const moment = rows.get(row) || { row, ms: Number(g.dataset.ms), kinds: [], says: [] };
        moment.kinds.push(g.dataset.kind);
        moment.says.push(g.dataset.says);
        rows.set(row, moment);
      }
      return [...rows.values()].sort((a, b) => a.row - b.row);
    };
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const time = $("t-time");
    const play = $("t-play");
    let steps = moments();
    let timer = 0;
    const last = () => steps.length;
    const now = () => Number(head.value);
    const show = (step) => {
      const moment = steps[step - 1];
      const row = step >= last() ? Infinity : moment ? moment.row : -1;
      for (const part of all(board, "[data-row]")) part.classList.toggle("future", Number(part.dataset.row) > row);
      head.max = last();
      head.value = step;
      const ms = moment ? moment.ms : 0;
      const said = moment ? moment.says.join(" ") : "";
      time.value = time.dataset.text.replace("##", last() ? steps[last() - 1].ms : 0).replace("#", ms);
      head.setAttribute("aria-valuetext", ms + " ms " + said);
      $("t-says").textContent = said;
    };
    const tall = /press|money|dup$|replay|torn/;
    const ticks = () => {
      $("t-ticks").replaceChildren(...steps.map((moment, index) => {
        const tick = document.createElement("i");
        const kind = moment.kinds.find((name) => tall.test(name));
        tick.className = kind ? "tall k-" + kind : "";
        tick.style.left = ((index + 1) / last()) * 100 + "%";
        return tick;
      }));
    };
    const stop = () => { clearTimeout(timer); timer = 0; play.textContent = play.dataset.play; };
    const go = (step) => { stop(); show(Math.max(0, Math.min(last(), step))); };
    const pause = () => {
      if (calm) return 900;
      const [here, next] = [steps[now() - 1], steps[now()]];
      const passes = here && next ? next.ms - here.ms : 0;
      // A silence that is folded in the picture is folded here.
      return passes > 20 ? 300 : Math.max(60, passes * Number($("t-speed").value));
    };
    const on = () => {
      show(now() + 1);
      if (now() >= last()) return stop();
      timer = setTimeout(on, pause());
    };
    const toggle = () => {
      if (timer) return stop();
      if (now() >= last()) show(0);
      play.textContent = play.dataset.pause;
      timer = setTimeout(on, pause());
    };
    const renew = () => { steps = moments(); ticks(); go(last()); };
    $("transport").hidden = false;
    renew();
    board.addEventListener("turned", renew);
    matchMedia("(min-width:1240px)").addEventListener("change", renew);
    play.addEventListener("click", toggle);
    $("t-first").addEventListener("click", () => go(0));
    $("t-back").addEventListener("click", () => go(now() - 1));
    $("t-on").addEventListener("click", () => go(now() + 1));
    $("t-last").addEventListener("click", () => go(last()));
    head.addEventListener("input", () => { stop(); show(now()); });
    const does = {
      " ": toggle,
      ArrowLeft: () => go(now() - 1), ArrowRight: () => go(now() + 1),
      Home: () => go(0), End: () => go(last()),
      1: () => focusSide(0), 2: () => focusSide(1),
      s: () => focusSide((halves.indexOf(document.activeElement) + 1) % halves.length),
      p: () => location.assign(halves[0].querySelector("a[href^='/lab/present']").href),
    };
    document.addEventListener("keydown", (event) => {
      if (typing(event) || event.target.closest(".code") || !plain(event)) return;
      if (event.key === " " && event.target.closest("button,summary,a")) return;
      const act = does[event.key.toLowerCase()] || does[event.key];
      if (act) { event.preventDefault(); act(); }
    });
  }

  // Presenter: what comes later is grey; the arrow keys go through the steps.
  const stage = $("pboard");
  if (stage) {
    const row = Number(stage.dataset.row);
    let now = null;
    for (const part of all(stage, "[data-row]")) {
      part.classList.toggle("future", Number(part.dataset.row) > row);
      if (Number(part.dataset.row) === row && seen(part)) now = part;
    }
    if (now) now.scrollIntoView({ block: "center" });
    document.addEventListener("keydown", (event) => {
      if (!plain(event)) return;
      if (event.key.toLowerCase() === "t") {
        const root = document.documentElement;
        root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
        return;
      }
      if (event.key === " " && event.target.closest("a")) return;
      const to = { ArrowRight: "a[rel=next]", " ": "a[rel=next]", ArrowLeft: "a[rel=prev]", Escape: "#leave" }[event.key];
      const link = to && document.querySelector(to);
      if (link) { event.preventDefault(); link.click(); }
    });
  }

  // Matrix: arrow keys move between cells, a panel tells what the cell in hand came to, and a
  // round that is going on is looked at every second.
  const round = $("matrix");
  if (round) {
    const peek = (link) => {
      $("p-where").textContent = link.dataset.where;
      $("p-says").textContent = link.querySelector(".says").textContent;
      $("p-says").className = "o-" + link.closest("td").className;
      $("p-why").textContent = link.dataset.why;
      $("p-open").href = link.href;
      $("p-beside").href = link.dataset.beside;
      $("p-beside").hidden = !link.dataset.beside;
      $("peek").hidden = false;
    };
    round.addEventListener("focusin", (event) => {
      const link = event.target.closest("a.cell");
      if (link) peek(link);
    });
    round.addEventListener("pointerover", (event) => {
      const link = event.target.closest("a.cell");
      if (link) peek(link);
    });
    round.addEventListener("keydown", (event) => {
      const cell = event.target.closest("td");
      const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!cell || !move) return;
      const row = cell.closest("table").rows[cell.parentElement.rowIndex + move[0]];
      const next = row && row.cells[cell.cellIndex + move[1]];
      const link = next && next.querySelector("a");
      if (link) { event.preventDefault(); link.focus(); }
    });
    const renew = async () => {
      const answer = await fetch(location.href);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const cell = document.activeElement.closest && document.activeElement.closest(".matrix td");
      const place = cell && [cell.parentElement.rowIndex, cell.cellIndex];
      const fresh = page.getElementById("matrix");
      round.replaceChildren(...fresh.childNodes);
      if (place) {
        const link = round.querySelector("table").rows[place[0]].cells[place[1]].querySelector("a");
        if (link) link.focus({ preventScroll: true });
      }
      if (fresh.dataset.running) setTimeout(renew, 1000);
    };
    if (round.dataset.running) setTimeout(renew, 1000);
  }
})();
