// Checks the luck of a finished tournament without any code of the arena's; protocol.md, "Luck", is what it follows:
//     arena reveal TOURNAMENT --json | node docs/verify.mjs
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const part = (bytes) => Buffer.concat([Buffer.from(bytes.length.toString(16).padStart(8, "0"), "hex"), bytes]);
// The first bytes of the stream that a key, a purpose and ids name, and its u64 words.
const derive = (outputLength, key, ...names) => {
  const name = Buffer.concat([Buffer.from("arena-luck-1"), key, ...names.map((id) => Buffer.from(`${id}`))].map(part));
  return createHash("shake256", { outputLength }).update(name).digest();
};
function* stream(...names) {
  for (let at = 0, bytes = Buffer.alloc(0); ; at += 8) {
    if (at === bytes.length) bytes = derive(2 * at || 1024, ...names);
    yield bytes.readBigUInt64BE(at);
  }
}
const below = (words, n) => {
  for (;;) {
    const word = words.next().value;
    if (word < (1n << 64n) - ((1n << 64n) % n)) return word % n;
  }
};
const shuffled = (items, words) => {
  const result = [...items];
  for (let i = result.length - 1; i > 0; i--) {
    const j = Number(below(words, BigInt(i + 1)));
    [result[i], result[j]] = [result[j], result[i]];
  }
  return result;
};
const check = (what, found, told) => {
  if (`${found}` !== `${told}`) throw new Error(`${what}: told ${told}, found ${found}`);
};
const product = (ranks, suits) => suits.flatMap((suit) => ranks.map((rank) => rank + suit));
const sortedDeck = (game, ruleSet) => {
  if (game === "avalanche") return [..."23456789TJQKA"].flatMap((rank) => Array(8).fill(rank)).concat(Array(6).fill("*"));
  return product([...(ruleSet.includes("deck=36") ? "6789TJQKA" : "23456789TJQKA")], [..."cdhs"]);
};

const told = JSON.parse(readFileSync(0, "utf8"));
const finished = told.stages.filter((stage) => stage.master !== null);
if (!finished.length) throw new Error("the tournament is not finished, its master seed is not revealed yet");
for (const { stage, practice, commitment, matches, ...secrets } of finished) {
  const [master, salt] = [secrets.master, secrets.salt].map((hex) => Buffer.from(hex, "hex"));
  check("bytes of master and salt", [master.length, salt.length], [32, 32]); // else one commitment fits many
  check("commitment", createHash("sha256").update(master).update(salt).digest("hex"), commitment);
  for (const { match, game, seats, round, rule_set, decks } of matches) {
    for (const [number, deck] of decks.entries()) {
      const key = derive(32, master, "deck", game, seats, round, number);
      check(`match ${match}, deck ${number}`, key.toString("hex"), deck.key);
      check(`match ${match}, order ${number}`, shuffled(sortedDeck(game, rule_set), stream(key, "shuffle")), deck.order);
      check(`match ${match}, deal seed ${number}`, derive(32, key, "deal").toString("hex"), deck.deal_seed);
      for (let i = 0; i < seats; i++) check("bot seed", below(stream(key, "bot", i), 1n << 53n), deck.bot_seeds[i]);
    }
  }
  console.log(`${told.tournament}, stage ${stage}: luck of ${matches.length} matches right for the commitment ${commitment}`);
  if (practice) console.log("It is practice: a short seed.");
}
console.log("Compare the commitments with what was told before the first deal of each stage.");
