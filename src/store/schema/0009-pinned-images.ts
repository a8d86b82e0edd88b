import type { Migration } from './migration.ts'

/** Which image the workers of a release run: what the name in its template meant when the first of them was started. */
export const pinnedImages: Migration = {
  version: 9,
  name: 'pinned-images',
  statements: ['ALTER TABLE releases ADD COLUMN image TEXT'],
}
