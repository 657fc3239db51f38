"""Services that show traces to people, one file each. A service is no part of a run: it gets what
`hopscope push` sends it and gives what `hopscope pull` asks for."""

KIND = "services"
