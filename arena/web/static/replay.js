// Plays a deal: positions come from the page's data, where the engine put them; here they are put together and drawn.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const deal = JSON.parse($("deal").textContent);
  const steps = deal.steps.map(([seat, action, elapsed, note, legal, ask, events]) =>
    ({ seat, action, elapsed, note, legal, ask: ask && readAsk(ask), events }));
  const faults = deal.faults.map((fault) => ({ ...fault, ask: fault.ask && readAsk(Object.values(fault.ask)) }));
  const rows = [...document.querySelectorAll(".steps tbody tr")];
  const last = steps.length - 1;
  const STEP_MS = 900;
  let now = 0;
  let view = null;
  let timer = 0;

  function readAsk([at, id, events, decision_ms, bank_ms]) {
    return { at, id, events, clock: { decision_ms, bank_ms } };
  }

  // Positions

  const reached = new Map();

  const change = (seen, [path, ...what]) => {
    const place = path.slice(0, -1).reduce((value, key) => value[key], seen);
    const key = path[path.length - 1];
    if (what.length === 1) place[key] = structuredClone(what[0]);
    else place[key].splice(what[0], what[1], ...structuredClone(what[2]));
  };

  // What a seat, or everybody's view, sees after a step; the same object is changed further by later calls.
  const see = (seat, number) => {
    let known = reached.get(seat);
    if (!known || known.number > number) reached.set(seat, known = { next: [0, 0], at: [0, 0], seen: { seat } });
    const own = seat === null ? deal.positions.spectator : deal.positions.seats[seat];
    [deal.positions.shared, own].forEach((told, which) => {
      while (known.next[which] < told.length && known.at[which] + told[known.next[which]][0] <= number) {
        const [after, changes] = told[known.next[which]++];
        known.at[which] += after;
        changes.forEach((one) => change(known.seen, one));
      }
    });
    known.number = number;
    return known.seen;
  };

  // What the chosen view knows of others

  const isOwn = (seat) => view === null || view === seat;
  const windows = [];
  if (deal.game === "smokestack") for (let i = 0; i <= last; i++) windows.push(see(null, i).window);
  const isKnown = (number) => isOwn(steps[number].seat) || !windows[number - 1];
  const isSeen = (by, seat) => by === null || seat === null || by.includes(seat);

  const veil = () => rows.forEach((row, number) => {
    const [, who, act, time, text] = row.cells;
    const isMine = isOwn(steps[number].seat) || number === 0;
    act.firstElementChild.hidden = !(isMine || isKnown(number));
    if (act.querySelector("q")) act.querySelector("q").hidden = !isMine;
    if (time.firstElementChild) time.firstElementChild.hidden = !isMine;
    who.classList.toggle("mine", view !== null && steps[number].seat === view);
    [...text.children].forEach((event, index) => { event.hidden = !isSeen(steps[number].events[index][1], view); });
  });

  // What was wrong may name cards: it lists what the seat could have done.
  const veilFaults = () => document.querySelectorAll("[data-of]").forEach((part) => {
    part.hidden = !isOwn(Number(part.dataset.of));
  });

  const told = (number) => {
    if (number && !isKnown(number)) return "a seat has answered in the window";
    const words = [...rows[number].querySelectorAll(".text div:not([hidden])")].map((one) => one.textContent);
    const act = rows[number].cells[2].firstElementChild.textContent;
    return words.join("; ") || (number ? `${deal.names[steps[number].seat]}: ${act}` : act);
  };

  // The decision that follows a position

  const decision = () => {
    const failed = faults.find((fault) => fault.step === now && isOwn(fault.seat));
    if (failed) return { ...failed, words: `${failed.fault}` };
    return now < last ? { ...steps[now + 1], words: "" } : null;
  };

  const showDecision = (next) => {
    const isShown = next && isOwn(next.seat);
    if ($("said").open) showSaid(isShown ? next : null);
    $("legal").replaceChildren();
    if (!next) { $("who").textContent = "The deal is over."; return; }
    if (!isShown) {
      $("who").textContent = windows[now] ? "Other seats are asked in the window; what they answer is hidden until it closes."
        : `${deal.names[next.seat]} (seat ${next.seat}) is to act; this seat does not see what it may do.`;
      return;
    }
    const time = next.words ? ` failed here: ${next.words}` : next.elapsed < 0 ? ": the house plays for it" : ` answers in ${duration(next.elapsed)}`;
    $("who").textContent = `${deal.names[next.seat]} (seat ${next.seat})${time}${next.note ? `, with the note “${next.note}”` : ""}`;
    $("legal").append(...(next.legal || []).map((action) => chip(action, action === next.action)));
    const chosen = $("legal").querySelector(".on");
    if (chosen) $("legal").scrollTop = chosen.offsetTop - 40;
  };

  const actionWords = (part) => part.replace(/^[2-9TJQKA][cdhs]$/, table.cardWords)
    .replace(/^(.)x(\d)$/, (_, rank, count) => `${table.cardWords(rank)} × ${count}`);

  const chip = (action, isChosen) => {
    const made = document.createElement("li");
    made.textContent = (isChosen ? "✓ " : "") + action.split(":").map((part) => actionWords(part)).join(" ");
    if (isChosen) {
      made.className = "on";
      made.setAttribute("aria-current", "true");
    }
    return made;
  };

  const showSaid = (next) => {
    if (!next || !next.ask) {
      $("asked").textContent = $("answered").textContent = "nothing that this view sees";
      return;
    }
    const { id } = next.ask;
    $("asked").textContent = lines(askMessage(next));
    $("answered").textContent = next.words ? `${next.sent}` : lines({ type: "act", id, action: next.action, ...(next.note ? { note: next.note } : {}) });
  };

  // The ask as it was sent: the position, and the last events that its seat had seen then.
  const askMessage = ({ seat, ask, legal }) => {
    const seen = steps.slice(0, ask.at + 1).flatMap((step) => step.events).filter(([, by]) => isSeen(by, seat));
    const events = ask.events ? seen.slice(-ask.events).map(([event]) => event) : [];
    return { type: "ask", id: ask.id, events, observation: see(seat, ask.at), legal, clock: ask.clock };
  };

  const lines = (message) => `{${Object.entries(message).map(([key, value]) =>
    `${JSON.stringify(key)}: ${JSON.stringify(value)}`).join(",\n ")}}`;

  // Showing

  const duration = (micros) => micros < 1e6 ? `${(micros / 1000).toFixed(micros < 1e4 ? 1 : 0)} ms` : `${(micros / 1e6).toFixed(1)} s`;

  const show = () => {
    const next = decision();
    const isWindow = Boolean(windows[now]);
    const cardsOf = (action) => new Set(table.cardsOf(deal.game, action));
    const isShown = next && isOwn(next.seat);
    const options = isShown ? next.legal || [] : [];
    const spent = deal.names.map(() => 0);
    for (let i = 1; i <= now; i++) spent[steps[i].seat] += Math.max(steps[i].elapsed, 0);
    table.draw($("felt"), deal.game, see(view, now), deal.names, {
      view,
      seat: next ? next.seat : null,
      acting: next && !(isWindow && !isShown) ? next.seat : null,
      failed: new Set(faults.filter((fault) => fault.step <= now).map((fault) => fault.seat)),
      bits: spent.map((time, seat) => isOwn(seat) ? [duration(time)] : []),
      lit: new Set(options.flatMap((action) => table.cardsOf(deal.game, action).slice(0, deal.game === "smokestack" ? 2 : 1))),
      chosen: cardsOf(isShown ? next.action : ""),
      left: Number(/x(\d)$/.exec(isShown && next.action || "")?.[1] ?? 2),
      last: cardsOf(now && isKnown(now) && deal.game !== "avalanche" ? steps[now].action : ""),
    });
    showDecision(next);
    $("slider").value = now;
    $("where").textContent = `step ${now} of ${last}`;
    const words = `Step ${now} of ${last}: ${told(now)}`;
    $("slider").setAttribute("aria-valuetext", words);
    $("told").textContent = words;
    $("here").href = address();
    showRow();
  };

  const showRow = () => {
    rows.forEach((row) => row.removeAttribute("aria-current"));
    rows[now].setAttribute("aria-current", "step");
    const box = $("list");
    const top = rows[now].offsetTop;
    if (top < box.scrollTop + 40 || top + rows[now].offsetHeight > box.scrollTop + box.clientHeight) {
      box.scrollTop = top - box.clientHeight / 2;
    }
  };

  // Moving

  const address = () => `#step=${now}${view === null ? "" : `&seat=${view}`}`;
  const keep = () => { if (location.hash !== address()) history.replaceState(null, "", address()); };

  const go = (number) => {
    now = Math.max(0, Math.min(last, number));
    show();
    if (!timer) keep();
  };

  const look = (seat) => {
    view = seat;
    $("view").value = seat ?? "";
    veil();
    veilFaults();
    go(now);
  };

  const play = (isOn) => {
    clearTimeout(timer);
    timer = isOn ? setTimeout(tick, STEP_MS / Number($("speed").value)) : 0;
    $("play").textContent = isOn ? "Pause" : "Play";
    $("told").setAttribute("aria-live", isOn ? "off" : "polite");
    if (!isOn) keep();
  };

  const tick = () => {
    go(now + 1);
    play(now < last);
  };

  const toggle = () => {
    if (!timer && now === last) go(0);
    play(!timer);
  };

  const move = (number) => { play(false); go(number); };

  const nextFault = () => {
    const at = [...new Set(faults.map((fault) => fault.step))].sort((a, b) => a - b);
    if (at.length) move(at.find((step) => step > now) ?? at[0]);
  };

  const follow = () => {
    const found = new URLSearchParams(location.hash.slice(1).replace(/^step-/, "step="));
    const seat = found.get("seat");
    view = /^\d{1,2}$/.test(seat || "") && Number(seat) < deal.names.length ? Number(seat) : null;
    now = /^\d{1,6}$/.test(found.get("step") || "") ? Number(found.get("step")) : now;
    play(false);
    look(view);
  };

  const KEYS = {
    ArrowLeft: () => move(now - 1), ArrowRight: () => move(now + 1), Home: () => move(0), End: () => move(last),
    f: nextFault, " ": toggle,
  };

  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, select, textarea");
    const isPressing = event.key === " " && event.target.closest("button, a, summary");
    const act = KEYS[event.key];
    if (!act || isTyping || isPressing || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    act();
  });
  $("first").addEventListener("click", KEYS.Home);
  $("back").addEventListener("click", KEYS.ArrowLeft);
  $("on").addEventListener("click", KEYS.ArrowRight);
  $("last").addEventListener("click", KEYS.End);
  $("play").addEventListener("click", toggle);
  $("fault").addEventListener("click", nextFault);
  $("speed").addEventListener("change", () => timer && play(true));
  $("view").addEventListener("change", () => look($("view").value === "" ? null : Number($("view").value)));
  $("slider").addEventListener("input", () => { now = Number($("slider").value); clearTimeout(timer); show(); });
  $("slider").addEventListener("change", () => play(false));
  $("said").addEventListener("toggle", () => showDecision(decision()));
  document.querySelector(".steps tbody").addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row && !String(getSelection())) move(rows.indexOf(row));
  });
  document.addEventListener("click", (event) => {
    const anchor = event.target.closest("a[href^='#step']");
    if (!anchor) return;
    event.preventDefault();
    history.replaceState(null, "", anchor.getAttribute("href"));
    follow();
    keep();
  });
  addEventListener("hashchange", follow);

  faults.forEach((fault) => {
    const mark = document.createElement("span");
    mark.textContent = "✖";
    mark.style.left = `${100 * fault.step / (last || 1)}%`;
    $("marks").append(mark);
  });
  $("list").classList.add("long");
  for (const part of ["player", "decision", "keys"]) $(part).hidden = false;
  follow();
})();
