package engine

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// fold writes a name as it is read: in small letters, without marks and separators, with letters of
// other scripts that look like Latin ones, full-width and mathematical ones, as Latin letters. Names
// in other scripts stay what they are.
func fold(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(name) {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			continue
		}
		b.WriteRune(unicode.ToLower(r))
	}
	own := b.String()
	latin := lookAlikes.Replace(own)
	for _, r := range latin {
		if r > unicode.MaxLatin1 {
			return own // words of that script
		}
	}
	return latin
}

// lookAlikes are letters that are taken for Latin ones.
var lookAlikes = strings.NewReplacer(
	"а", "a", "в", "b", "с", "c", "ԁ", "d", "е", "e", "ғ", "f", "һ", "h", "н", "h", "і", "i", "ї", "i", "ј", "j", "к", "k", "ӏ", "l", "м", "m", "п", "n", "о", "o", "р", "p", "ԛ", "q", "г", "r", "ѕ", "s", "т", "t", "ц", "u", "ѵ", "v", "ԝ", "w", "х", "x", "у", "y",
	"α", "a", "β", "b", "ϲ", "c", "ε", "e", "η", "n", "ι", "i", "κ", "k", "μ", "m", "ν", "v", "ο", "o", "ρ", "p", "σ", "o", "τ", "t", "υ", "u", "χ", "x", "γ", "y", "ѡ", "w",
	"ı", "i", "ɑ", "a", "ɡ", "g", "ʏ", "y", "ѐ", "e", "ɩ", "i", "ꜱ", "s", "ᴍ", "m", "ᴛ", "t", "ᴇ", "e", "ʀ", "r", "ᴜ", "u", "ᴀ", "a", "ɴ", "n", "ʜ", "h", "ʟ", "l", "ᴏ", "o", "ᴅ", "d", "ᴠ", "v", "ᴘ", "p", "ɪ", "i", "ᴋ", "k", "ᴄ", "c",
	"0", "o", "1", "l", "3", "e", "5", "s", "@", "a",
)

// posing are words in the names of tags by which prompts are built.
var posing = []string{
	"hark", "recall", "system", "assistant", "user", "human", "developer", "model", "tool", "function", "invoke", "parameter", "antml", "imstart", "imend", "turn",
	"inst", "prompt", "think", "context", "memor", "message", "role", "agent", "query", "result", "response", "conversation", "transcript", "history", "record",
	"untrusted", "external", "openclaw", "claude", "reminder", "policy", "admin", "command", "document", "endof", "startof", "startheader", "endheader", "eot", "channel", "reasoning", "scratchpad", "observation", "internal",
}

// poses reports the folded name of a tag that could be taken for a part of a prompt.
func poses(name string) bool {
	switch name {
	case "s", "bos", "eos", "sys", "ai", "root":
		return true
	case "":
		return false
	}
	for _, word := range posing {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// roles are who speaks in a transcript, in the languages people write, folded.
var roles = folded(
	"system", "assistant", "user", "human", "developer", "model", "ai", "bot", "tool", "function", "admin", "administrator", "root", "owner", "operator", "agent", "claude", "gpt", "chatgpt", "openclaw", "instruction", "instructions", "response", "observation", "context", "sys", "end of records",
	"系统", "系統", "用户", "用戶", "使用者", "助手", "助理", "人类", "人類", "开发者", "管理员", "模型", "システム", "ユーザー", "ユーザ", "アシスタント", "人間", "開発者", "管理者", "시스템", "사용자", "어시스턴트", "개발자", "관리자",
	"système", "utilisateur", "utilisatrice", "développeur", "humain", "administrateur", "sistema", "usuario", "asistente", "desarrollador", "humano", "administrador", "usuário", "assistente", "utente", "sviluppatore", "umano",
	"benutzer", "nutzer", "assistent", "entwickler", "mensch", "anwender", "gebruiker", "systeem", "ontwikkelaar", "użytkownik", "asystent", "användare", "bruger", "bruker",
	"система", "пользователь", "ассистент", "помощник", "человек", "разработчик", "администратор", "користувач", "асистент", "kullanıcı", "sistem", "asistan", "pengguna", "người dùng", "hệ thống", "trợ lý",
	"النظام", "نظام", "المستخدم", "مستخدم", "المساعد", "مساعد", "מערכת", "משתמש", "עוזר", "सिस्टम", "उपयोगकर्ता", "सहायक", "ผู้ใช้", "ระบบ", "ผู้ช่วย", "σύστημα", "χρήστης", "βοηθός",
)

func folded(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[fold(w)] = true
	}
	return m
}

// roleWords may stand beside a role in a header.
var roleWords = []string{"prompt", "message", "messages", "instruction", "instructions", "reminder", "note", "override", "update", "result", "results", "output", "response", "turn", "role", "input", "query", "call", "end", "begin", "start", "new", "the", "nachricht", "消息", "提示词", "提示", "指令", "メッセージ", "プロンプト", "메시지", "mensaje", "mensagem", "сообщение"}

// isRole reports the folded name of a role, with or without such a word.
func isRole(name string) bool {
	for range 3 {
		if name == "" || roles[name] {
			return name != ""
		}
		was := name
		for _, word := range roleWords {
			if cut := strings.TrimPrefix(strings.TrimSuffix(name, word), word); cut != name && cut != "" {
				name = cut
				break
			}
		}
		if name == was {
			return false
		}
	}
	return roles[name]
}

// htmlNames are the elements of pages and pictures, which people write about.
var htmlNames = func() map[string]bool {
	m := map[string]bool{}
	for name := range strings.FieldsSeq("a abbr address area article aside audio b base bdi bdo blockquote body br button canvas caption center circle cite code col colgroup data datalist dd defs del details dfn dialog div dl dt ellipse em embed fieldset figcaption figure font footer form frame frameset g h1 h2 h3 h4 h5 h6 head header hr html i iframe img input ins kbd label legend li line link main map mark marquee menu meta meter nav noscript object ol optgroup option output p param path picture polygon polyline pre progress q rect rp rt ruby samp script search section select slot small source span strike strong style sub summary sup svg table tbody td template text textarea tfoot th thead time title tr track tt u ul use var video wbr doctype cdata xml") {
		m[name] = true
	}
	return m
}()
