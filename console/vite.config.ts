// Built into the Python package: the server serves these files and nothing else.
import { defineConfig } from 'vite'

export default defineConfig({
  base: '/',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../src/stretto/server/console',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false }, // an inline script, which the CSP forbids
    assetsInlineLimit: 0,
  },
})
