/** The table of the server's time. */

/**
 * One row, with which a later server continues the server's time (docs/adr/0079). `now_ms` is that time when the
 * machine had run for `since_boot_ms` in the run of its system that `boot` names, and `database_ms` the clock of the
 * database then; null where that has none of its own. `step_since_ms` is when a step of the machine's clock was
 * noticed that was not followed. Until `held_until_ms` nothing is removed by retention. `accepted` is 1 when the next
 * start takes the time of the machine's clock.
 */
export const serverClock = `CREATE TABLE server_clock (
  id {{integer}} PRIMARY KEY CHECK (id = 1),
  boot TEXT NOT NULL,
  since_boot_ms {{integer}} NOT NULL,
  now_ms {{integer}} NOT NULL,
  database_ms {{integer}},
  step_since_ms {{integer}},
  held_until_ms {{integer}},
  accepted {{integer}} NOT NULL DEFAULT 0 CHECK (accepted IN (0, 1))
) {{strict}}`
