package mask

import "strings"

// options are the short options of programs that take a password. In pairs a name stands before it.
var options = []struct {
	program, option string
	attached        bool // the value may follow without a blank
	pair            bool // the value is name:password
}{
	{"curl", "-u", true, true}, {"curl", "--user", false, true}, {"curl", "--proxy-user", false, true}, {"curl", "-U", true, true}, {"wget", "-u", false, true},
	{"http", "-a", false, true}, {"https", "-a", false, true}, {"xh", "-a", false, true}, {"smbclient", "-U", false, true}, {"snmpwalk", "-A", false, false},
	{"mysql", "-p", true, false}, {"mysqldump", "-p", true, false}, {"mysqladmin", "-p", true, false}, {"mariadb", "-p", true, false}, {"mariadb-dump", "-p", true, false}, {"mycli", "-p", true, false},
	{"sshpass", "-p", true, false}, {"docker", "-p", false, false}, {"podman", "-p", false, false}, {"helm", "-p", false, false}, {"oc", "-p", false, false}, {"az", "-p", false, false}, {"nerdctl", "-p", false, false}, {"crane", "-p", false, false},
	{"redis-cli", "-a", false, false}, {"mongo", "-p", false, false}, {"mongosh", "-p", false, false}, {"mongodump", "-p", false, false}, {"ldapsearch", "-w", false, false}, {"ldapadd", "-w", false, false},
	{"zip", "-P", false, false}, {"unzip", "-P", false, false}, {"7z", "-p", true, false}, {"7za", "-p", true, false}, {"sqlcmd", "-P", false, false}, {"bcp", "-P", false, false},
	{"ipmitool", "-P", false, false}, {"xfreerdp", "-p", false, false}, {"useradd", "-p", false, false}, {"cqlsh", "-p", false, false}, {"clickhouse-client", "--password", false, false},
}

// option masks the value of an option: of --password by its name, of -p by the program's.
func (f *finder) option(start, end int) {
	w := f.text[start:end]
	if !strings.HasPrefix(w, "--") || w == "--user" || w == "--proxy-user" {
		f.short(start, end)
		return
	}
	if len(w) < 6 || weigh(strings.TrimLeft(w, "-")) == nothing || end >= len(f.text) || f.text[end] != ' ' {
		return
	}
	name := strings.TrimLeft(w, "-")
	i, stop := f.argument(end + 1)
	if stop-i < 4 || f.text[i] == '-' || strings.Trim(f.text[i:stop-1], "abcdefghijklmnopqrstuvwxyz") == "" && strings.IndexByte(".,:", f.text[stop-1]) >= 0 {
		return // no value, or a sentence about the option
	}
	f.value(name, weigh(name), i, stop, atOption)
}

// argument returns where the argument at i begins and ends, without its quotes.
func (f *finder) argument(i int) (start, end int) {
	if i < len(f.text) && (f.text[i] == '"' || f.text[i] == '\'') {
		quote := f.text[i]
		end = i + 1
		for end < len(f.text) && f.text[end] != quote && f.text[end] != '\n' {
			end++
		}
		return i + 1, end
	}
	end = i
	for end < len(f.text) && strings.IndexByte(" \t\n\r;|&\"'`)", f.text[end]) < 0 {
		end++
	}
	return i, end
}

// short masks the value of a short option of a program that takes a password by it.
func (f *finder) short(start, end int) {
	w := f.text[start:end]
	if start > 0 && f.text[start-1] != ' ' && f.text[start-1] != '\t' {
		return
	}
	for _, o := range options {
		if !strings.HasPrefix(w, o.option) || len(w) > len(o.option) && !o.attached || !f.runs(start, o.program) {
			continue
		}
		i := start + len(o.option)
		var stop int
		switch {
		case i < len(f.text) && f.text[i] == ' ' && (!strings.HasPrefix(o.program, "my") && !strings.HasPrefix(o.program, "maria") && !strings.HasPrefix(o.program, "7z")):
			i, stop = f.argument(f.skipSpace(i))
		case o.attached && i < len(f.text):
			i, stop = f.argument(i)
		default:
			continue
		}
		v := f.text[i:stop]
		if o.pair {
			sep := strings.IndexAny(v, ":%")
			if sep < 0 || strings.HasPrefix(v, "$") {
				return
			}
			i += sep + 1
			v = v[sep+1:]
		}
		if o.option == "-p" && (digits(strings.ReplaceAll(v, ":", "")) && strings.Contains(v, ":") || strings.Contains(v, "/")) {
			return // docker run -p 80:80
		}
		if len(v) >= 3 && !placeholder(v) && !isCode(v) && !worded(v) && v[0] != '-' {
			f.add(i, stop, "password of a command")
		}
		return
	}
}

// runs reports that the command on the line before i is the program's; docker has to log in.
func (f *finder) runs(i int, program string) bool {
	from := max(0, i-400)
	command := f.text[from:i]
	for n := len(command) - 1; n > 0; n-- {
		if c := command[n]; c == '\n' && command[n-1] != '\\' || c == ';' || c == '|' || c == '&' && command[n-1] == '&' {
			command = command[n+1:]
			break
		}
	}
	at := strings.LastIndex(command, program)
	if at < 0 || at > 0 && (alnum(command[at-1]) || command[at-1] == '-' || command[at-1] == '_') {
		return false
	}
	rest := command[at+len(program):]
	if rest == "" || rest[0] != ' ' && rest[0] != '.' && rest[0] != '\\' {
		return false
	}
	switch program {
	case "docker", "podman", "oc", "az", "nerdctl", "crane", "helm":
		return strings.Contains(rest, " login")
	}
	return true
}

// netrc masks the password of a line (or lines) like "machine host login name password value".
func (f *finder) netrc(start, end int) {
	before := f.text[max(0, start-200):start]
	m := strings.LastIndex(before, "machine ")
	if d := strings.LastIndex(before, "default"); m < 0 {
		m = d
	}
	var words []string
	if m >= 0 {
		words = strings.Fields(strings.TrimPrefix(before[m:], "machine "))
	}
	if len(words) != 3 || words[1] != "login" || end >= len(f.text) || f.text[end] != ' ' {
		if end < len(f.text) && f.text[end] == ' ' {
			f.spaced(start, end)
		}
		return
	}
	i, stop := f.argument(f.skipSpace(end))
	if v := f.text[i:stop]; len(v) >= 3 && !placeholder(v) && !worded(v) {
		f.add(i, stop, "password of a command")
	}
}
