// Checks the luck of a finished tournament without any code of the arena's; protocol.md, "Luck", is what it follows:
//     arena reveal TOURNAMENT --json | node docs/verify.mjs
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const part = (bytes) => Buffer.concat([Buffer.from(bytes.length.toString(16).padStart(8, "0"), "hex"), bytes]);
// The u64 words of the stream that a key, a purpose and ids name.
function* stream(key, ...names) {
  const name = Buffer.concat([Buffer.from("arena-luck-1"), key, ...names.map((id) => Buffer.from(`${id}`))].map(part));
  for (let at = 0, bytes = Buffer.alloc(0); ; at += 8) {
    if (at === bytes.length) bytes = createHash("shake256", { outputLength: 2 * at || 1024 }).update(name).digest();
    yield bytes.readBigUInt64BE(at);
  }
}
const derive = (...name) => {
  const words = stream(...name);
  const bytes = Buffer.alloc(32);
  for (let i = 0; i < 4; i++) bytes.writeBigUInt64BE(words.next().value, 8 * i);
  return bytes;
};
const below = (words, n) => {
  const limit = (1n << 64n) - ((1n << 64n) % n);
  for (;;) {
    const word = words.next().value;
    if (word < limit) return word % n;
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
if (told.master === null) throw new Error("the tournament is not finished, its master seed is not revealed yet");
const [master, salt] = [told.master, told.salt].map((hex) => Buffer.from(hex, "hex"));
check("bytes of master and salt", [master.length, salt.length], [32, 32]); // else one commitment fits many
check("commitment", createHash("sha256").update(master).update(salt).digest("hex"), told.commitment);
for (const { match, game, seats, round, rule_set, decks } of told.matches) {
  for (const [number, deck] of decks.entries()) {
    const key = derive(master, "deck", game, seats, round, number);
    check(`match ${match}, deck ${number}`, key.toString("hex"), deck.key);
    check(`match ${match}, order ${number}`, shuffled(sortedDeck(game, rule_set), stream(key, "shuffle")), deck.order);
    check(`match ${match}, deal seed ${number}`, derive(key, "deal").toString("hex"), deck.deal_seed);
    for (let i = 0; i < seats; i++) check("bot seed", below(stream(key, "bot", i), 1n << 53n), deck.bot_seeds[i]);
  }
}
console.log(`${told.tournament}: the luck of ${told.matches.length} matches is right for the commitment ${told.commitment}`);
console.log(`${told.practice ? "It is practice: a short seed. " : ""}Compare that with what was told before the first deal.`);
