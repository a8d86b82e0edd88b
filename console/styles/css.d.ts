/** Style sheets that the bundler reads. */
declare module '*.css'
