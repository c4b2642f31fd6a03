// Keeps a page up to date: whenever the database changes, the parts marked `data-live` are fetched again and exchanged.
// What is under the pointer does not move: there, rows are only written over, and anything else waits.
"use strict";
(() => {
  const status = document.getElementById("live");
  let fetching = false;
  let again = false;
  let waiting = null;
  let updated = "";
  let events = null;
  let later = 0;
  const RETRY_MS = 3000;

  const say = (text, state = "") => {
    status.textContent = text;
    status.dataset.state = state;
  };
  const keys = (part) => [...part.querySelectorAll("[data-key]")].map((row) => row.dataset.key).join("\n");

  // Rows of the same keys in the same order: write only the cells that differ.
  const writeOver = (old, fresh) => {
    const rows = fresh.querySelectorAll("[data-key]");
    old.querySelectorAll("[data-key]").forEach((row, index) => {
      const next = rows[index];
      if (row.innerHTML === next.innerHTML) return;
      [...row.children].forEach((cell, at) => {
        const other = next.children[at];
        if (other && cell.innerHTML !== other.innerHTML) cell.innerHTML = other.innerHTML;
      });
      row.className = next.className;
      row.classList.add("fresh");
    });
  };

  const mark = (old, fresh) => {
    const before = new Map([...old.querySelectorAll("[data-key]")].map((row) => [row.dataset.key, row.innerHTML]));
    fresh.querySelectorAll("[data-key]").forEach((row) => {
      if (before.get(row.dataset.key) !== row.innerHTML) row.classList.add("fresh");
    });
  };

  const exchange = (old, fresh) => {
    mark(old, fresh);
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const key = focused && [focused.getAttribute("href"), focused.getAttribute("aria-label")].join();
    const before = old.getBoundingClientRect().bottom;
    const left = [...old.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
    old.replaceWith(fresh);
    fresh.querySelectorAll(".scroll").forEach((box, index) => { box.scrollLeft = left[index] || 0; });
    if (focused) {
      const same = [...fresh.querySelectorAll("a, [tabindex]")].find(
        (one) => [one.getAttribute("href"), one.getAttribute("aria-label")].join() === key);
      if (same) same.focus({ preventScroll: true });
    }
    // A part above the pointer that grew would push down what the pointer is on.
    const hovered = document.querySelector("main section:hover, main nav:hover, main [data-live]:hover");
    const grown = fresh.getBoundingClientRect().bottom - before;
    const isAbove = hovered && fresh.compareDocumentPosition(hovered) & Node.DOCUMENT_POSITION_FOLLOWING;
    if (grown && isAbove && fresh.getBoundingClientRect().right > hovered.getBoundingClientRect().left) {
      window.scrollBy({ top: grown, behavior: "instant" });
    }
  };

  const update = (text) => {
    const next = new DOMParser().parseFromString(text, "text/html");
    let held = false;
    let differs = false;
    for (const old of document.querySelectorAll("[data-live]")) {
      const fresh = next.getElementById(old.id);
      if (!fresh || old.innerHTML === fresh.innerHTML) continue;
      differs = true;
      if (!old.matches(":hover")) {
        exchange(old, document.adoptNode(fresh));
        continue;
      }
      if (keys(old) === keys(fresh)) writeOver(old, fresh);
      held ||= old.textContent !== fresh.textContent;
    }
    waiting = held ? text : null;
    if (differs) updated = ` · updated ${new Date().toISOString().slice(11, 19)} UTC`;
    say(held ? "new results are waiting: move the pointer off the table" : `live${updated}`);
  };

  const load = async () => {
    if (fetching) { again = true; return; }
    fetching = true;
    try {
      const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } });
      if (answer.ok) update(await answer.text());
    } catch {
      // The stream tells when the server is back.
    }
    fetching = false;
    if (again) { again = false; load(); }
  };

  document.addEventListener("pointerout", () => {
    if (waiting) requestAnimationFrame(() => waiting && update(waiting));
  });

  // A browser opens six connections to a host at most, so only what is looked at may hold one open.
  const connect = () => {
    disconnect();
    if (document.visibilityState === "hidden") return;
    events = new EventSource(document.body.dataset.events);
    events.addEventListener("changed", load);
    events.addEventListener("open", () => { say(`live${updated}`); load(); }); // what was missed until now
    events.addEventListener("error", () => {
      say("not connected; trying again", "lost");
      if (events.readyState === EventSource.CLOSED) later = setTimeout(connect, RETRY_MS); // it was refused
    });
  };
  const disconnect = () => {
    clearTimeout(later);
    if (events) events.close();
  };
  document.addEventListener("visibilitychange", connect);
  connect();
})();
