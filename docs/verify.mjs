// Checks the luck of a finished tournament without any code of the arena's; protocol.md, "Luck", is what it follows:
//     arena reveal TOURNAMENT --json | node docs/verify.mjs
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

const part = (bytes) => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
};
// The u64 words of the stream that a key, a purpose and ids name.
function* stream(key, ...names) {
  const name = Buffer.concat([Buffer.from("arena-luck-1"), key, ...names.map((id) => Buffer.from(`${id}`))].map(part));
  for (let at = 0, bytes = Buffer.alloc(0); ; at += 8) {
    if (at === bytes.length) {
      bytes = createHash("shake256", { outputLength: 2 * at || 1024 }).update(name).digest();
    }
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

const told = JSON.parse(readFileSync(0, "utf8"));
if (told.master === null) throw new Error("the tournament is not finished, its master seed is not revealed yet");
const [master, salt] = [told.master, told.salt].map((hex) => Buffer.from(hex, "hex"));
check("commitment", createHash("sha256").update(master).update(salt).digest("hex"), told.commitment);
for (const { match, game, seats, round, decks } of told.matches) {
  for (const [number, deck] of decks.entries()) {
    const key = derive(master, "deck", game, seats, round, number);
    check(`match ${match}, deck ${number}`, key.toString("hex"), deck.key);
    check(`match ${match}, order ${number}`, shuffled(deck.sorted, stream(key, "shuffle")), deck.order);
    check(`match ${match}, deal seed ${number}`, derive(key, "deal").toString("hex"), deck.deal_seed);
    for (const [seat, seed] of deck.bot_seeds.entries()) check("bot seed", below(stream(key, "bot", seat), 1n << 53n), seed);
  }
}
console.log(`${told.tournament}: the commitment and the luck of ${told.matches.length} matches are right`);
