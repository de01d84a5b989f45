"""The charts of a page: functions that give Vega-Lite specifications, which are plain JSON."""
