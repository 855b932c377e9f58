"""What a language model's agent asks of runs and traces, in answers of a few kilobytes: `tracekit mcp`.

    a client ──MCP, stdio──▶ server ──▶ a tool of `tools` ──▶ Opened (a report, kept in memory) ──▶ answer ──▶ budget

A tool reads the same document as `tracekit report --format json` has. Text that was recorded stands in fields called
`untrusted` and nowhere else (`answers.py`); what does not fit into the budget is counted (`budget.py`). Only
`server.py` imports the SDK.
"""
