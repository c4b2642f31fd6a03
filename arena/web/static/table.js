// Draws a position of a deal: seats around a table, cards, piles. It knows how games look, and no rules.
"use strict";
const table = (() => {
  const SUITS = { c: "♣", d: "♦", h: "♥", s: "♠" };

  const make = (kind, words = "", ...inside) => {
    const made = document.createElement(kind);
    if (words) made.className = words;
    made.append(...inside);
    return made;
  };

  const cardWords = (code) => code === "*" ? "★" : code[0].replace("T", "10") + (SUITS[code[1]] || "");

  // `shown` has sets of cards: those that may be played, that are played next, and that were
  // played last; `left` of those that are played next are still to be drawn, as cards of a rank can be alike.
  const card = (code, shown) => {
    const face = make("span", `face ${code[1] || (code === "*" ? "joker" : "rank")}`);
    face.append(make("b", "", code === "*" ? "★" : code[0].replace("T", "10")));
    if (code[1]) face.append(make("span", "", SUITS[code[1]]));
    for (const kind of ["lit", "last"]) if (shown && shown[kind].has(code)) face.classList.add(kind);
    if (shown && shown.chosen.has(code) && shown.left-- > 0) face.classList.add("chosen");
    return face;
  };

  const cards = (codes, shown, kind = "") => make("div", `cards ${kind}`, ...codes.map((code) => card(code, shown)));

  const backs = (count, most = 6) => {
    const pile = make("div", "cards backs");
    for (let i = 0; i < Math.min(count, most); i++) pile.append(make("span", "face down"));
    pile.setAttribute("role", "img");
    pile.setAttribute("aria-label", `${count} cards face down`);
    return pile;
  };

  const group = (label, ...inside) => make("div", "group", make("small", "", label), ...inside);

  const stock = (count, codes, name = "stock") => {
    const parts = [count ? backs(count, 3) : "empty"];
    if (codes && codes.length) parts.push(cards(codes.slice(0, 8), null, "tiny"));
    return group(`${name}: ${count}${codes && codes.length > 8 ? ", the next eight" : codes && codes.length ? ", the next" : ""}`, ...parts);
  };

  const avalanche = (seen, names, shown) => ({
    seats: names.map((_, seat) => ({
      bits: [`pile ${seen.piles[seat]}`, `hand ${seen.counts[seat]}`, ...(seen.leader === seat ? ["opened"] : [])],
      parts: [
        seen.hands ? cards(seen.hands[seat], seat === shown.seat && shown)
          : seat === seen.seat ? cards(seen.hand, seat === shown.seat && shown) : backs(seen.counts[seat], 10),
      ],
    })),
    middle: [
      stock(seen.stock, seen.stock_cards),
      make("div", "plays", ...seen.table.map((play, index) => group(
        names[play.seat],
        cards(Array(play.count).fill(play.rank), index === seen.table.length - 1 ? { ...NONE, last: new Set([play.rank]) } : null)))),
      group(`dead: ${seen.dead}`),
    ],
  });

  const roles = (seen, seat) => [
    seen.leader === seat && "leads", seen.defender === seat && (seen.taking ? "takes" : "defends"),
    seen.passed.includes(seat) && "passed",
    seen.out[seat] !== null && (seen.out[seat] ? `out in bout ${seen.out[seat]}` : "out"),
  ].filter(Boolean);

  const durak = (seen, names, shown) => ({
    seats: names.map((_, seat) => ({
      bits: [`hand ${seen.hands[seat].length}`, ...roles(seen, seat)],
      parts: [cards(seen.hands[seat], shown)],
    })),
    middle: seen.phase === "collect" ? [
      stock(seen.deck, seen.deck_cards, "deck"),
      group("open", cards(seen.open, shown)),
      ...(seen.drawn ? [group("drawn", cards([seen.drawn], shown))] : []),
      ...(seen.redeals ? [group(`dealt again: ${seen.redeals}`)] : []),
    ] : [
      group("trump", make("div", `trump ${seen.trump}`, SUITS[seen.trump])),
      make("div", "plays", ...seen.table.map(([attack, beat]) => {
        const pair = make("div", "pair", card(attack, shown));
        if (beat) pair.append(card(beat, shown));
        return pair;
      })),
      group(`bout ${seen.bout}`, make("small", "", seen.limit ? `at most ${seen.limit} attacks` : "")),
      group(`beaten off: ${seen.discard.length}`),
    ],
  });

  const smokestack = (seen, names, shown) => ({
    seats: names.map((_, seat) => ({
      bits: [`banked ${seen.banked[seat].length}`, `sweeps ${seen.sweeps[seat]}`,
        ...(seen.answers && seen.answers[seat] ? [`“${seen.answers[seat]}”`] : [])],
      parts: [
        ...seen.stacks[seat].map((stack) => cards(stack, shown, "heap")),
        ...seen.banked[seat].map((stack) => cards(stack, null, "tiny")),
      ],
    })),
    middle: [
      stock(seen.stock, seen.stock_cards),
      group("centre", cards(seen.centre, shown, "big")),
      group(seen.window ? `window before the turn of ${names[seen.turn]}` : `turn of ${names[seen.turn]}`,
        make("small", "", `turn ${seen.turns + 1} · refreshes ${seen.refreshes}`)),
    ],
  });

  const DRAW = { avalanche, durak, smokestack };
  const NONE = { lit: new Set(), chosen: new Set(), last: new Set() };

  // The cards that an action names: those it plays first, then what they are played on.
  const cardsOf = (game, action) => {
    if (!action) return [];
    const parts = action.split(":");
    if (game === "avalanche") return parts[0] === "play" ? [parts[1][0]] : [];
    return parts[0] === "beat" ? [parts[2], parts[1]] : parts.slice(1);
  };

  // How many seats are at the left and at the right of the bottom one, of all others.
  const sides = (others) => others < 3 ? 0 : others < 5 ? 1 : others < 8 ? 2 : 3;

  const draw = (root, game, seen, names, shown) => {
    const drawn = DRAW[game](seen, names, shown);
    const bottom = shown.view ?? 0;
    const places = names.map((_, offset) => (bottom + offset) % names.length);
    const side = sides(names.length - 1);
    const box = (kind, seats) => make("div", kind, ...seats.map((seat) => seatBox(names[seat], seat, drawn.seats[seat], shown)));
    root.dataset.seats = names.length > 6 ? "many" : names.length > 3 ? "some" : "few";
    root.replaceChildren(
      box("left", places.slice(1, 1 + side)),
      box("top", places.slice(1 + side, places.length - side)),
      make("div", "middle", ...drawn.middle),
      box("right", places.slice(places.length - side)),
      box("bottom", [bottom]));
  };

  const seatBox = (name, seat, what, shown) => {
    const isActing = shown.acting === seat;
    const plate = make("div", "plate", make("b", "", `${isActing ? "▶ " : ""}${name}`),
      make("small", "", [`seat ${seat}`, ...what.bits, ...(shown.bits[seat] || [])].join(" · ")));
    if (isActing) plate.append(make("span", "hidden", " is to act"));
    return make("div", `seat${isActing ? " acting" : ""}${shown.failed.has(seat) ? " failed" : ""}`, plate, make("div", "held", ...what.parts));
  };

  return { draw, cardsOf, cardWords };
})();
