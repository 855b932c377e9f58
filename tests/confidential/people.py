"""Names of people and companies that code and its messages mention: a user, host or folder may be called so, too."""

_NAMES = """
    ada alex alice alisa amazon arthur bob dan ezyang facebook frank gary google horace jansel john kai li microsoft qi
    robert shunting steven voz wei xin
"""
PEOPLE = frozenset(_NAMES.split())
