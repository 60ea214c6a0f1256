declare module "@highlightjs/cdn-assets/es/highlight.min.js" {
  const hljs: {
    highlight(code: string, options: { language: string; ignoreIllegals: boolean }): { value: string };
    getLanguage(name: string): { name: string } | undefined;
  };
  export default hljs;
}
