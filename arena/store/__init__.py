"""The only SQL: one writer, any number of readers, everything that later cannot be reconstructed.

`database` opens it, `schema` is its shape, and one module for each thing kept: `bots`, `tournaments`, `matches`,
`ratings`. Functions take the open database first; those that write expect to be called inside `database.writing`.
"""
